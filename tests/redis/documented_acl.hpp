// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tidegate::redis_test {

/// Returns the words of the line `ACL SETUSER tidegate ...` of docs/redis.md, with `password` in
/// place of its placeholder. Throws if the page has no such line.
[[nodiscard]] std::vector<std::string> DocumentedAcl(const std::string& password);
/// Returns the words of the documented line for sentinels, which have other commands; empty if the
/// page has none.
[[nodiscard]] std::vector<std::string> DocumentedSentinelAcl(const std::string& password);

}  // namespace tidegate::redis_test
