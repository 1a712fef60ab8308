// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/raw_upstream.hpp"

namespace tidegate::gateway_test {

/// A response as some server sends it.
struct ResponseRow {
  std::string name;
  std::string bytes;
  int status = 200;
  std::string body = "hello";
  std::string method = "GET";
  Scripted::Then then = Scripted::Then::kKeep;
  std::string ambiguous = {};  ///< Not empty: it may be refused, and why.
  /// Whether it must pass only where nginx passes it, or in any case.
  enum class Judge : std::uint8_t { kAsNginx, kAlways };
  Judge judge = Judge::kAsNginx;
};

/// With the options by default.
[[nodiscard]] std::vector<ResponseRow> ResponseRows();
/// With `gateway.response_header_count: 1000`.
[[nodiscard]] std::vector<ResponseRow> ManyFieldRows();
/// With `gateway.response_header_bytes: 128KiB`.
[[nodiscard]] std::vector<ResponseRow> LongFieldRows();
/// With `accept_bare_lf: true` of the upstream.
[[nodiscard]] std::vector<ResponseRow> BareLfRows();

}  // namespace tidegate::gateway_test
