// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tidegate::redis_test {

/// `ACL SETUSER tidegate ...`, word by word, as docs/redis.md has it, with a password of the test's
/// own. Throws if the page has no such line.
[[nodiscard]] std::vector<std::string> DocumentedAcl(const std::string& password);
/// The line for the sentinels, which know other commands; empty if the page has none.
[[nodiscard]] std::vector<std::string> DocumentedSentinelAcl(const std::string& password);

}  // namespace tidegate::redis_test
