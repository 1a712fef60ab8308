// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream_care.hpp"

#include <algorithm>
#include <utility>

#include "gateway/health_probe.hpp"
#include "net/resolver.hpp"
#include "telemetry/log.hpp"

namespace tidegate {

/// Looks after one.
class UpstreamCare::Carer {
 public:
  Carer(net::Reactor& reactor, net::BufferPool& buffers, const std::shared_ptr<Upstream>& upstream)
      : reactor_(reactor), pool_(reactor, buffers, upstream), resolve_(*this), check_(*this) {
    net::Deadlines& deadlines = reactor.deadlines();
    const UpstreamSpec& spec = upstream->spec();
    if (!upstream->names().empty()) {
      for (std::size_t i = 0; i < upstream->names().size(); ++i) {
        resolvers_.push_back(std::make_unique<net::Resolver>(reactor));
      }
      deadlines.Arm(resolve_, deadlines.KindFor(spec.resolve));
    }
    if (spec.health) Check();
  }

  [[nodiscard]] const Upstream* upstream() noexcept { return &pool_.upstream(); }

 private:
  struct Tick final : net::Deadlines::Node {
    explicit Tick(Carer& owner) : carer(owner) {}
    void OnDeadline(net::Deadlines::Kind) override {
      this == &carer.check_ ? carer.Check() : carer.Resolve();
    }
    Carer& carer;
  };

  void Resolve() {
    Upstream& upstream = pool_.upstream();
    net::Deadlines& deadlines = reactor_.deadlines();
    deadlines.Arm(resolve_, deadlines.KindFor(upstream.spec().resolve));
    for (std::size_t i = 0; i < resolvers_.size(); ++i) {
      const std::size_t target = upstream.names()[i];
      const auto& spec = upstream.spec().targets[target];
      resolvers_[i]->Resolve(
          spec.host, spec.port,
          [&upstream, &spec, target](const std::vector<net::SocketAddress>& addresses,
                                     const std::string& why) {
            if (addresses.empty()) {
              Log::Warning(
                  "DNS lookup failed; keeping the previous addresses",
                  {{"upstream", upstream.spec().name}, {"target", spec.host}, {"error", why}});
            }
            upstream.SetAddresses(target, addresses);
          });
    }
  }

  void Check() {
    net::Deadlines& deadlines = reactor_.deadlines();
    deadlines.Arm(check_, deadlines.KindFor(pool_.upstream().spec().health->interval));
    const Members& members = pool_.members();
    std::erase_if(probes_, [&members](const std::unique_ptr<HealthProbe>& probe) {
      return std::ranges::find(members, probe->member()) == members.end();
    });
    for (const auto& member : members) {
      const auto known = std::ranges::find_if(
          probes_, [&](const auto& probe) { return probe->member() == member; });
      if (known == probes_.end()) probes_.push_back(std::make_unique<HealthProbe>(pool_, member));
    }
    for (const auto& probe : probes_) probe->Ask();
  }

  net::Reactor& reactor_;
  UpstreamPool pool_;
  Tick resolve_;
  Tick check_;
  std::vector<std::unique_ptr<net::Resolver>> resolvers_;
  std::vector<std::unique_ptr<HealthProbe>> probes_;
};

UpstreamCare::UpstreamCare(net::Reactor& reactor, net::BufferPool& buffers)
    : reactor_(reactor), buffers_(buffers) {}

UpstreamCare::~UpstreamCare() = default;

void UpstreamCare::Use(const Upstreams& upstreams) {
  std::vector<std::unique_ptr<Carer>> carers;
  for (const auto& upstream : upstreams) {
    const auto known = std::ranges::find_if(carers_, [&](const std::unique_ptr<Carer>& carer) {
      return carer != nullptr && carer->upstream() == upstream.get();
    });
    if (known != carers_.end()) {
      carers.push_back(std::move(*known));
    } else if (upstream->spec().health || !upstream->names().empty()) {
      carers.push_back(std::make_unique<Carer>(reactor_, buffers_, upstream));
    }
  }
  carers_ = std::move(carers);
}

}  // namespace tidegate
