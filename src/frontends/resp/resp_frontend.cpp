// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/resp_frontend.hpp"

#include <atomic>
#include <utility>

#include "frontends/resp/resp_connection.hpp"
#include "frontends/resp/throttle.hpp"

namespace tidegate {

void RespFrontend::OnDecided(DecisionCall& call) noexcept {
  RespPending& pending = call.Attached<RespPending>();
  pending.ready = true;
  pending.connection->OnReplyReady();
}

const Result<Quota>& RespFrontend::QuotaOf(const QuotaSpec& spec) {
  const auto mixed = (static_cast<std::uint64_t>(spec.limit) * 0x9E3779B97F4A7C15u) ^
                     (static_cast<std::uint64_t>(spec.burst) * 0xC2B2AE3D27D4EB4Fu) ^
                     (static_cast<std::uint64_t>(spec.period.count()) * 0x165667B19E3779F9u);
  CachedQuota& cached = quotas_[(mixed >> 32) % kCachedQuotas];
  if (cached.spec.limit != spec.limit || cached.spec.burst != spec.burst ||
      cached.spec.period != spec.period) {
    cached.quota = MakeThrottleQuota(spec);
    cached.spec = spec;
  }
  return cached.quota;
}

std::uint64_t RespFrontend::NextId() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

net::Connection* RespListener::NewConnection(net::Accepted accepted) {
  return new RespConnection(*this, std::move(accepted));
}

}  // namespace tidegate
