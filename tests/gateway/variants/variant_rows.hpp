// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway_test {

/// Returns the concatenation of all parts.
[[nodiscard]] std::string Joined(std::initializer_list<std::string_view> parts);

/// A request for a protected resource: `/admin/**`, which is denied, or `POST /v1/login`, which has
/// a limit.
struct PathRow {
  std::string group;  ///< Kind of change to the request, for the summary.
  std::string method;
  std::string target;       ///< Request target; `$HOST` stands for the value of Host.
  std::string fields = {};  ///< Additional header lines, each with its CRLF.
  /// The whole request line with its CRLF, in the place of method, target and version; empty: those
  /// are used.
  std::string line = {};

  [[nodiscard]] std::string Line() const {
    return line.empty() ? method + " " + target + " HTTP/1.1\r\n" : line;
  }
  /// Returns true if a proxy could describe this request to /v1/auth, that is, if it has only a
  /// method and a target.
  [[nodiscard]] bool Describable() const { return line.empty() && fields.empty(); }
};

/// Rows with changed paths, methods, targets and request lines that upstreams may accept with any
/// configuration.
[[nodiscard]] std::vector<PathRow> PathRows();
/// Rows with the same resources in other letter case, which are the same to upstreams that ignore
/// case.
[[nodiscard]] std::vector<PathRow> CaseRows();
/// Rows with a harmless path and header fields by which some upstreams replace the path.
[[nodiscard]] std::vector<PathRow> HeaderRows();
/// Rows with a harmless method and header fields by which some upstreams replace the method. The
/// gateway does not protect against these fields.
[[nodiscard]] std::vector<PathRow> MethodOverrideRows();

/// A form of a key that the upstream may read as the same key, while a rule of Tidegate may not.
struct IdentityRow {
  enum class Kind : std::uint8_t { kHeader, kCookie, kQuery, kAuthorization, kBasic };
  /// Tells whether a proxy would forward a request with these fields to /v1/auth unchanged. A proxy
  /// does not forward fields that concern one connection, nor bytes after the head.
  enum class Auth : std::uint8_t { kForwarded, kNotForwarded };
  Kind kind = Kind::kHeader;
  std::string name;
  /// Field lines. `$KEY` stands for the key, `$K1` for its first character in hexadecimal, `$K8`
  /// for that character in octal and `$REST` for the characters after the first.
  std::string fields;
  std::string query = {};
  std::string body = {};  ///< Bytes after the head, with chunks and trailers if `fields` announce
                          ///< them.
  Auth auth = Auth::kForwarded;
};

[[nodiscard]] std::vector<IdentityRow> IdentityRows();

/// A value of X-Forwarded-For from a trusted proxy whose client has the address `$IP`.
struct ForwardedRow {
  std::string name;
  std::string fields;
  /// Tells whether the last element is not an address: then the client is unknown, and the request
  /// may count for the proxy itself.
  enum class Fallback : std::uint8_t { kNone, kProxy };
  Fallback fallback = Fallback::kNone;
};

[[nodiscard]] std::vector<ForwardedRow> ForwardedRows();

}  // namespace tidegate::gateway_test
