// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/raw_upstream.hpp"

namespace tidegate::gateway_test {

/// A response, byte for byte as a real server sends it.
struct ResponseRow {
  std::string name;
  std::string bytes;
  int status = 200;
  std::string body = "hello";
  std::string method = "GET";
  Scripted::Then then = Scripted::Then::kKeep;
  std::string ambiguous = {};  ///< Why Tidegate may reject the response; empty: it must be
                               ///< forwarded.
  /// Selects whether Tidegate must forward the response only if nginx forwards it, or in any case.
  enum class Judge : std::uint8_t { kAsNginx, kAlways };
  Judge judge = Judge::kAsNginx;
};

/// Returns responses for a gateway with the default options.
[[nodiscard]] std::vector<ResponseRow> ResponseRows();
/// Returns responses for a gateway with `gateway.response_header_count: 1000`.
[[nodiscard]] std::vector<ResponseRow> ManyFieldRows();
/// Returns responses for a gateway with `gateway.response_header_bytes: 128KiB`.
[[nodiscard]] std::vector<ResponseRow> LongFieldRows();
/// Returns responses for an upstream with `accept_bare_lf: true`.
[[nodiscard]] std::vector<ResponseRow> BareLfRows();

}  // namespace tidegate::gateway_test
