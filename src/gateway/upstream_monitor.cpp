// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream_monitor.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "gateway/upstream_pool.hpp"
#include "net/http1_parser.hpp"
#include "net/resolver.hpp"
#include "net/timer.hpp"
#include "telemetry/log.hpp"

namespace tidegate {

std::optional<bool> HealthCount::Note(bool good, const UpstreamSpec::Health& health) noexcept {
  good_ = good ? good_ + 1 : 0;
  bad_ = good ? 0 : bad_ + 1;
  if (good_ >= health.healthy) {
    good_ = health.healthy;  // Limited, so that the count does not overflow after years.
    return true;
  }
  if (bad_ >= health.unhealthy) {
    bad_ = health.unhealthy;
    return false;
  }
  return std::nullopt;
}

namespace {

/// Checks the health of one member: one request at a time, each on a new connection.
class HealthProbe final : private UpstreamConnection::User, private net::Deadlines::Node {
 public:
  HealthProbe(UpstreamPool& pool, std::shared_ptr<Member> member)
      : pool_(pool), member_(std::move(member)), health_(*pool.upstream().spec().health) {}
  ~HealthProbe() {
    if (connection_ != nullptr) pool_.Discard(*connection_);
  }

  [[nodiscard]] const std::shared_ptr<Member>& member() const noexcept { return member_; }

  void Start() {
    if (connection_ != nullptr) return;  // The last check is still in progress.
    parser_ = net::ResponseParser(pool_.upstream().line_end());
    std::string problem;
    bool ours = false;
    connection_ = pool_.Lend(member_, *this, Member::Clock::now(), problem, ours);
    if (connection_ == nullptr && ours) return;  // This machine is at fault, not the target.
    if (connection_ == nullptr) return Finish(false, problem);
    net::Deadlines& deadlines = pool_.reactor().deadlines();
    deadlines.Arm(*this, deadlines.KindFor(health_.timeout));
  }

 private:
  void OnUpstreamUp() override {
    net::Channel& channel = connection_->channel();
    channel.out() << "GET " << health_.path << " HTTP/1.1\r\nHost: "
                  << (health_.host.empty() ? member_->authority : health_.host)
                  << "\r\nUser-Agent: tidegate-health\r\nConnection: close\r\n\r\n";
    if (!channel.Flush()) Finish(false, "the connection was closed before the request was sent");
  }

  void OnUpstreamFailed(const std::string& problem) override {
    connection_ = nullptr;
    Finish(false, problem);
  }

  void OnUpstreamReady() override {
    net::Channel& channel = connection_->channel();
    if (!channel.Flush())
      return Finish(false, "the connection was closed before the request was sent");
    while (true) {
      auto parsed = net::Parsed::kMore;
      if (!channel.input().empty()) {
        parsed = parser_.Parse(channel.input(), {}, net::AnswerTo::kOther, head_);
      }
      if (parsed == net::Parsed::kRefused) return Finish(false, std::string(parser_.reason()));
      if (parsed == net::Parsed::kDone) {
        const int status = head_.status;
        if (status >= 200) {
          const bool good = status >= health_.status_from && status <= health_.status_to;
          return Finish(good, "status " + std::to_string(status));
        }
        // The final response may have arrived together with this interim one.
        channel.Drop(parser_.consumed());
        parser_.Reset();
        continue;
      }
      switch (channel.Fill()) {
        case net::Channel::Got::kBytes: break;
        case net::Channel::Got::kNothing: return;
        case net::Channel::Got::kFull:
          return Finish(false, "the response head is too long for a health check");
        default: return Finish(false, "the target closed the connection without a response");
      }
    }
  }

  void OnDeadline(net::Deadlines::Kind) override {
    Finish(false, "no response within the timeout of the health check");
  }

  void Finish(bool good, const std::string& why) {
    net::Deadlines::Disarm(*this);
    if (connection_ != nullptr) pool_.Discard(*std::exchange(connection_, nullptr));
    const auto healthy = count_.Note(good, health_);
    if (!healthy || member_->healthy.exchange(*healthy) == *healthy) return;
    const std::string& upstream = pool_.upstream().spec().name;
    if (*healthy) {
      Log::Info("a target is up again: it gets requests",
                {{"upstream", upstream}, {"target", member_->text}});
    } else {
      Log::Warning("a target is down: it gets no requests until its health checks succeed",
                   {{"upstream", upstream}, {"target", member_->text}, {"why", why}});
    }
  }

  UpstreamPool& pool_;
  const std::shared_ptr<Member> member_;
  const UpstreamSpec::Health& health_;
  UpstreamConnection* connection_ = nullptr;
  net::ResponseParser parser_;
  net::ResponseHead head_;
  HealthCount count_;
};

}  // namespace

/// The lookups and checks of one upstream.
class UpstreamMonitor::Schedule {
 public:
  Schedule(net::Reactor& reactor, net::BufferPool& buffers,
           const std::shared_ptr<Upstream>& upstream)
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
    explicit Tick(Schedule& owner) : schedule(owner) {}
    void OnDeadline(net::Deadlines::Kind) override {
      this == &schedule.check_ ? schedule.Check() : schedule.Resolve();
    }
    Schedule& schedule;
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
    for (const auto& probe : probes_) probe->Start();
  }

  net::Reactor& reactor_;
  UpstreamPool pool_;
  Tick resolve_;
  Tick check_;
  std::vector<std::unique_ptr<net::Resolver>> resolvers_;
  std::vector<std::unique_ptr<HealthProbe>> probes_;
};

UpstreamMonitor::UpstreamMonitor(net::Reactor& reactor, net::BufferPool& buffers)
    : reactor_(reactor), buffers_(buffers) {}

UpstreamMonitor::~UpstreamMonitor() = default;

void UpstreamMonitor::Use(const Upstreams& upstreams) {
  std::vector<std::unique_ptr<Schedule>> schedules;
  for (const auto& upstream : upstreams) {
    const auto known =
        std::ranges::find_if(schedules_, [&](const std::unique_ptr<Schedule>& schedule) {
          return schedule != nullptr && schedule->upstream() == upstream.get();
        });
    if (known != schedules_.end()) {
      schedules.push_back(std::move(*known));
    } else if (upstream->spec().health || !upstream->names().empty()) {
      schedules.push_back(std::make_unique<Schedule>(reactor_, buffers_, upstream));
    }
  }
  schedules_ = std::move(schedules);
}

}  // namespace tidegate
