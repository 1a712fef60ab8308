// SPDX-License-Identifier: Apache-2.0
#include "cli/descriptors.hpp"

#include <sys/resource.h>

#include <string>

#include "server/descriptor_plan.hpp"
#include "telemetry/log.hpp"

namespace tidegate::cli {

std::uint64_t RaiseDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return limit.rlim_cur == before || setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur
                                                                           : before;
}

void WarnOfFewDescriptors(std::uint64_t limit, const Config& config) {
  const std::uint64_t needed = DescriptorsNeeded(config);
  if (limit == 0 || limit >= needed) return;
  Log::Warning(
      "too few file descriptors for limits.connections on every listener and connections to "
      "upstreams: connections will be rejected before that limit; raise LimitNOFILE of systemd or "
      "the hard limit of `ulimit -n`, or lower limits.connections",
      {{"descriptors", std::to_string(limit)},
       {"needed", std::to_string(needed)},
       {"connections_per_listener", std::to_string(config.limits.connections)}});
}

}  // namespace tidegate::cli
