// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/body_template.hpp"
#include "rules/header_edits.hpp"

namespace tidegate {

/// How a denial looks to clients of the gateway and of proxies that ask /v1/auth.
struct DenialSpec {
  std::optional<int> status = {};         ///< Replaces 429; absent: 429 is sent.
  std::string content_type = {};          ///< The media type of `body`.
  std::optional<BodyTemplate> body = {};  ///< Absent: the problem document is sent.
  std::vector<HeaderEdits::Set> headers = {};
  std::string link = {};  ///< URL of a page about the limit; empty: no link.

  friend bool operator==(const DenialSpec&, const DenialSpec&) = default;
};

/// Returns true if a configuration cannot set the header field `name` (in lower case) in a response
/// of Tidegate itself: Tidegate writes it, or it describes the body of another response, or it
/// lets caches keep the response.
[[nodiscard]] bool IsDenialField(std::string_view name) noexcept;

}  // namespace tidegate
