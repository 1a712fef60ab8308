// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tidegate::gateway_test {

/// A request, byte for byte as a real client sent it.
struct CapturedRequest {
  std::string title;      ///< Client, its version, and what is special about the request.
  std::string ambiguous;  ///< Why a proxy may reject the request; empty: it must be forwarded.
  std::string needs;      ///< Option of Tidegate without which it rejects the request; empty: none.
  std::string until;      ///< Target of the last of several requests; empty: there is one request.
  std::string bytes;
};

/// Returns the records of a fixture; the head of the fixture describes its format. Throws if the
/// fixture is malformed.
[[nodiscard]] std::vector<CapturedRequest> ReadRequests(const std::string& path);

}  // namespace tidegate::gateway_test
