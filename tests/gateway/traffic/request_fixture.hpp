// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tidegate::gateway_test {

/// A request as a real client sent it.
struct CapturedRequest {
  std::string title;      ///< Client, version and what is special.
  std::string ambiguous;  ///< Not empty: it may be refused, and why.
  std::string needs;      ///< Not empty: the option that it passes with.
  std::string until;      ///< Not empty: the target of the last of several requests.
  std::string bytes;
};

/// The records of a fixture; its own head describes the format. Throws if it has a mistake.
[[nodiscard]] std::vector<CapturedRequest> ReadRequests(const std::string& path);

}  // namespace tidegate::gateway_test
