// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "rules/address.hpp"

namespace tidegate {

struct HeaderField {
  std::string_view name;  ///< As sent; compare with EqualsIgnoreCase.
  std::string_view value;
};

/// A request as rules see it: what a door has read, normalised. All memory is the door's.
struct RequestView {
  std::string_view method;  ///< As sent: methods are case-sensitive.
  std::string_view host;    ///< Lower case, without port and final dot.
  std::string_view path;    ///< Normalised (rules/path.hpp), without the query.
  std::string_view query;   ///< Without the question mark, as sent.
  std::string_view route;   ///< The gateway's route, where there is one.
  std::span<const HeaderField> headers;
  bool trusted =
      false;  ///< Whether its peer may state costs: a trusted proxy, or the API's caller.
  bool has_client = false;  ///< Whether `client` is known.
  Address client;           ///< After rules/client_address.hpp; not yet masked.
};

/// ASCII only.
[[nodiscard]] bool EqualsIgnoreCase(std::string_view a, std::string_view b) noexcept;

/// The first field of that name, or an empty view with a null pointer.
[[nodiscard]] std::string_view FindHeader(std::span<const HeaderField> headers,
                                          std::string_view name) noexcept;

}  // namespace tidegate
