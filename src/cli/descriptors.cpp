// SPDX-License-Identifier: Apache-2.0
#include "cli/descriptors.hpp"

#include <sys/resource.h>

#include <string>

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

std::uint64_t DescriptorsFor(std::size_t connections) { return connections + 100; }

void WarnOfFewDescriptors(std::uint64_t given, std::size_t connections) {
  const std::uint64_t needed = DescriptorsFor(connections);
  if (given == 0 || given >= needed) return;
  Log::Warning(
      "there are fewer descriptors than limits.connections may need: connections beyond them wait "
      "unanswered; raise LimitNOFILE of systemd or the hard limit of `ulimit -n`, or lower "
      "limits.connections",
      {{"descriptors", std::to_string(given)},
       {"needed", std::to_string(needed)},
       {"connections", std::to_string(connections)}});
}

}  // namespace tidegate::cli
