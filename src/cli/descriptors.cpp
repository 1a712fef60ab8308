// SPDX-License-Identifier: Apache-2.0
#include "cli/descriptors.hpp"

#include <sys/resource.h>

#include <string>

#include "server/descriptor_plan.hpp"
#include "telemetry/log.hpp"

namespace tidegate::cli {
namespace {

/// From so many on, a server with the default of limits.connections has room for 1,000 clients and
/// as many connections to upstreams.
constexpr std::uint64_t kManyDescriptors = 4096;

}  // namespace

std::uint64_t RaiseDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return limit.rlim_cur == before || setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur
                                                                           : before;
}

void ReportFewDescriptors(std::uint64_t limit, const Config& config) {
  const std::uint64_t needed = DescriptorsNeeded(config);
  if (limit == 0 || limit >= needed) return;
  const std::string has = std::to_string(limit);
  const std::string needs = std::to_string(needed);
  const std::string connections = std::to_string(config.limits.connections);
  const Log::Fields fields = {
      {"descriptors", has}, {"needed", needs}, {"connections_per_listener", connections}};
  // The default is more than most servers need, and the configuration does not insist on it.
  const bool is_default = config.limits.connections == Config::Limits{}.connections;
  if (is_default && limit >= kManyDescriptors) {
    Log::Info(
        "the file descriptors allow fewer connections than the default of limits.connections: "
        "further ones will be rejected; for more, raise LimitNOFILE of systemd or the hard limit "
        "of `ulimit -n`",
        fields);
    return;
  }
  Log::Warning(
      "too few file descriptors for limits.connections on every listener and connections to "
      "upstreams: connections will be rejected before that limit; raise LimitNOFILE of systemd or "
      "the hard limit of `ulimit -n`, or lower limits.connections",
      fields);
}

}  // namespace tidegate::cli
