// SPDX-License-Identifier: Apache-2.0
#include "server/descriptor_plan.hpp"

#include <algorithm>
#include <limits>

namespace tidegate {
namespace {

constexpr std::uint64_t kLeastReserved = 16;
constexpr std::uint64_t kMostReserved = 256;

int AsDescriptor(std::uint64_t number) noexcept {
  return static_cast<int>(std::min<std::uint64_t>(number, std::numeric_limits<int>::max()));
}

}  // namespace

DescriptorPlan PlanDescriptors(std::uint64_t limit, const Config& config) noexcept {
  constexpr int kAny = std::numeric_limits<int>::max();
  if (limit == 0) return {.limit = 0, .clients = kAny, .upstreams = kAny, .admin = kAny};
  const std::uint64_t reserved =
      std::min(limit / 2, std::clamp(limit / 8, kLeastReserved, kMostReserved));
  const std::uint64_t for_upstreams = config.listen.gateway.off() ? 0 : limit / 4;
  return {.limit = limit,
          .clients = AsDescriptor(limit - reserved - for_upstreams),
          .upstreams = AsDescriptor(limit - reserved),
          .admin = AsDescriptor(limit - reserved / 2)};
}

std::uint64_t DescriptorsNeeded(const Config& config) noexcept {
  const Config::Listen& listen = config.listen;
  std::uint64_t clients = 0;
  for (const ListenSpec* const spec : {&listen.api, &listen.admin, &listen.gateway, &listen.resp}) {
    if (!spec->off()) clients += config.limits.connections;
  }
  const std::uint64_t upstreams = listen.gateway.off() ? 0 : config.limits.connections;
  return clients + upstreams + kMostReserved;
}

}  // namespace tidegate
