// SPDX-License-Identifier: Apache-2.0
#include "rules/match_spec.hpp"

#include <memory_resource>

#include "rules/request_path.hpp"

namespace tidegate {

void IgnorePathCase(MatchSpec& spec) {
  spec.written_paths = spec.paths;
  for (std::string& path : spec.paths) {
    std::pmr::monotonic_buffer_resource memory;
    path = std::string(CanonicalPath(path, /*ignore_case=*/true, memory));
  }
  for (MatchSpec& inner : spec.any) IgnorePathCase(inner);
  for (MatchSpec& inner : spec.none) IgnorePathCase(inner);
}

}  // namespace tidegate
