// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tidegate::net::http1 {

/// A request target taken apart (RFC 9112, 3.2). Views point into the target, but for a path that
/// an absolute-form target left out.
struct Target {
  std::optional<std::string_view> authority;  ///< Of absolute-form and authority-form.
  std::string_view path;
  std::string_view query;
};

/// Nothing if `target` has no form that `method` may have. Its characters have been checked.
[[nodiscard]] std::optional<Target> SplitTarget(std::string_view method,
                                                std::string_view target) noexcept;

enum class Port : std::uint8_t { kOptional, kRequired };

/// Whether `authority` is a host and a port: no user information, no empty host. Stricter than RFC
/// 3986, which lets names hold percent-encodings and !$&'()*+,;= as well: no DNS name has them, and
/// who splits lists at commas would see two hosts.
[[nodiscard]] bool IsHostAndPort(std::string_view authority, Port port) noexcept;

}  // namespace tidegate::net::http1
