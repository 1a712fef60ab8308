// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/admission.hpp"
#include "frontends/override_desk.hpp"
#include "frontends/policy.hpp"
#include "frontends/refusals.hpp"
#include "frontends/resp/resp_asked.hpp"
#include "net/channel.hpp"
#include "net/listener.hpp"
#include "telemetry/tally.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// The Redis protocol's door of one reactor: what its connections share.
class RespFrontend {
 public:
  struct Options {
    Admission admission;
    Refusals& refusals;   ///< Outlives the door.
    std::string version;  ///< Of this program, for INFO and HELLO.
  };
  /// Store, tally and overrides must outlive the door.
  RespFrontend(AsyncStore& store, Tally& tally, const OverrideDesk& overrides, Options options,
               const std::shared_ptr<const Policy>& policy);
  ~RespFrontend();

  /// For all commands from now on; those under way keep what they began with.
  void Use(const std::shared_ptr<const Policy>& policy);
  void Use(const std::shared_ptr<const Policy>& policy, const Admission& admission) {
    options_.admission = admission;
    Use(policy);
  }

  [[nodiscard]] const std::shared_ptr<const Policy>& policy() const noexcept { return policy_; }
  [[nodiscard]] const OverrideTable& overrides() const noexcept { return *overrides_.table(); }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] net::BufferPool& buffers() noexcept { return buffers_; }

  [[nodiscard]] RespAsked* Take();
  void Give(RespAsked* asked) noexcept;
  /// It will be started in a moment.
  void Expect(const RespAsked& asked) noexcept { store_.Expect(asked.charge); }
  /// Puts it to the store; its connection is told when it is ready, perhaps before this returns.
  void Start(RespAsked& asked);

  /// Quotas that callers brought, by their numbers: the same few come again and again.
  [[nodiscard]] const Result<Quota>& QuotaOf(const QuotaSpec& spec);

  /// Of the process, so that none of two reactors' connections have the same.
  [[nodiscard]] static std::uint64_t NextId() noexcept;

 private:
  struct Known {
    QuotaSpec spec;
    Result<Quota> quota = std::unexpected(Error{ErrorCode::kBadQuota, {}});
  };
  static constexpr std::size_t kKnown = 256;
  static constexpr std::size_t kKept = 4096;

  AsyncStore& store_;
  Tally& tally_;
  const OverrideDesk& overrides_;
  Options options_;
  std::shared_ptr<const Policy> policy_;
  net::BufferPool buffers_;
  std::vector<std::unique_ptr<RespAsked>> free_;
  std::vector<Known> known_{kKnown};
};

/// Accepts the clients of the RESP door.
class RespListener final : public net::Listener {
 public:
  RespListener(net::Reactor& reactor, net::Descriptor socket, RespFrontend& door,
               const Options& options)
      : Listener(reactor, std::move(socket), options), door_(door) {}

  [[nodiscard]] RespFrontend& door() noexcept { return door_; }
  [[nodiscard]] std::string_view shed_text() const noexcept override {
    return "-ERR max number of clients reached\r\n";
  }
  [[nodiscard]] std::string_view needs_tls_text() const noexcept override {
    return "-ERR this port speaks TLS\r\n";
  }

 private:
  [[nodiscard]] net::Connection* NewConnection(net::Accepted accepted) override;
  RespFrontend& door_;
};

}  // namespace tidegate
