// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "decision/pipeline.hpp"
#include "frontends/access_policy.hpp"
#include "frontends/auth_failures.hpp"
#include "net/channel.hpp"
#include "net/listener.hpp"

namespace tidegate {

/// The Redis protocol on one reactor: the state that its connections share.
class RespFrontend final : public DecisionListener {
 public:
  /// Pipeline, failures and budget must outlive the frontend; a budget of nullptr is no limit.
  /// `version` is the version of this program, for INFO and HELLO.
  RespFrontend(DecisionPipeline& pipeline, AuthFailures& failures, std::string version,
               net::BufferBudget* budget = nullptr)
      : pipeline_(pipeline), failures_(failures), version_(std::move(version)), buffers_(budget) {}

  [[nodiscard]] DecisionPipeline& pipeline() noexcept { return pipeline_; }
  [[nodiscard]] AuthFailures& failures() noexcept { return failures_; }
  [[nodiscard]] const std::string& version() const noexcept { return version_; }
  [[nodiscard]] net::BufferPool& buffers() noexcept { return buffers_; }

  /// Notifies the connection that the reply to a command is ready.
  void OnDecided(DecisionCall& call) noexcept override;

  /// Returns the quota for the numbers in a command, from a cache: most callers repeat a few.
  [[nodiscard]] const Result<Quota>& QuotaOf(const QuotaSpec& spec);

  /// Returns a connection id that is unique in the process.
  [[nodiscard]] static std::uint64_t NextId() noexcept;

 private:
  struct CachedQuota {
    QuotaSpec spec;
    Result<Quota> quota = std::unexpected(Error{ErrorCode::kBadQuota, {}});
  };
  static constexpr std::size_t kCachedQuotas = 256;

  DecisionPipeline& pipeline_;
  AuthFailures& failures_;
  const std::string version_;
  net::BufferPool buffers_;
  std::vector<CachedQuota> quotas_{kCachedQuotas};
};

/// Accepts clients that speak the Redis protocol.
class RespListener final : public net::Listener {
 public:
  RespListener(net::Reactor& reactor, net::Descriptor socket, RespFrontend& frontend,
               const Options& options)
      : Listener(reactor, std::move(socket), options), frontend_(frontend) {}

  [[nodiscard]] RespFrontend& frontend() noexcept { return frontend_; }
  [[nodiscard]] std::string_view shed_text() const noexcept override {
    return "-ERR max number of clients reached\r\n";
  }
  [[nodiscard]] std::string_view needs_tls_text() const noexcept override {
    return "-ERR this port speaks TLS\r\n";
  }

 private:
  [[nodiscard]] net::Connection* NewConnection(net::Accepted accepted) override;
  RespFrontend& frontend_;
};

}  // namespace tidegate
