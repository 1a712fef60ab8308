// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway_test {

/// One text of all parts.
[[nodiscard]] std::string Joined(std::initializer_list<std::string_view> parts);

/// A way to ask for a protected resource: `/admin/**`, which is denied, or `POST /v1/login`, which
/// has a limit.
struct PathRow {
  std::string group;  ///< The kind of trick, for the summary.
  std::string method;
  std::string target;       ///< `$HOST` stands for the value of Host.
  std::string fields = {};  ///< Further header lines, each with its CRLF.
  /// The whole request line in the place of method, target and version, with its CRLF.
  std::string line = {};

  [[nodiscard]] std::string Line() const {
    return line.empty() ? method + " " + target + " HTTP/1.1\r\n" : line;
  }
  /// Whether a proxy could describe this request to /v1/auth: it has a method and a target only.
  [[nodiscard]] bool Describable() const { return line.empty() && fields.empty(); }
};

/// Tricks with paths, methods, targets and request lines that work whatever the configuration.
[[nodiscard]] std::vector<PathRow> PathRows();
/// The same resources in other letter case: the same to upstreams that ignore case.
[[nodiscard]] std::vector<PathRow> CaseRows();
/// An innocent path with header fields by which some upstreams replace it.
[[nodiscard]] std::vector<PathRow> HeaderRows();
/// An innocent method with header fields by which some upstreams replace it. The gateway promises
/// nothing about them.
[[nodiscard]] std::vector<PathRow> MethodOverrideRows();

/// A way to send a key that the upstream may read as the same key, while a rule may not.
struct IdentityRow {
  enum class Kind : std::uint8_t { kHeader, kCookie, kQuery, kAuthorization, kBasic };
  /// Whether a proxy would hand such a request to /v1/auth as it is: not what belongs to one
  /// connection or comes behind the head.
  enum class Auth : std::uint8_t { kAsked, kNotAsked };
  Kind kind = Kind::kHeader;
  std::string name;
  /// `$KEY` stands for the key, `$K1` for its first character in hexadecimal, `$K8` in octal and
  /// `$REST` for what follows it.
  std::string fields;
  std::string query = {};
  std::string body = {};  ///< Behind the head, with chunks and trailers if `fields` say so.
  Auth auth = Auth::kAsked;
};

[[nodiscard]] std::vector<IdentityRow> IdentityRows();

/// A value of X-Forwarded-For by a trusted proxy whose client has the address `$IP`.
struct ForwardedRow {
  std::string name;
  std::string fields;
  /// Whether the last element is no address: then the client cannot be known, and the request may
  /// count for the proxy itself.
  enum class Fallback : std::uint8_t { kNone, kProxy };
  Fallback fallback = Fallback::kNone;
};

[[nodiscard]] std::vector<ForwardedRow> ForwardedRows();

}  // namespace tidegate::gateway_test
