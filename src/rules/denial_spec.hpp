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
  std::optional<int> status = {};         ///< In place of 429.
  std::string content_type = {};          ///< Of `body`.
  std::optional<BodyTemplate> body = {};  ///< Nothing: the problem document.
  std::vector<HeaderEdits::Set> headers = {};
  std::string link = {};  ///< Where a client finds more about the limit; empty: nowhere.

  friend bool operator==(const DenialSpec&, const DenialSpec&) = default;
};

/// Returns true if Tidegate itself writes the header field `name` (in lower case) into denials. A
/// configuration cannot set it there.
[[nodiscard]] bool IsDenialField(std::string_view name) noexcept;

}  // namespace tidegate
