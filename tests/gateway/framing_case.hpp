// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway_test {

/// Requests of a case that must reach the upstream through Tidegate.
enum class Want : std::uint8_t {
  kRefused,  ///< No complete request; the client gets 4xx or 5xx, and the connection closes.
  kWaits,    ///< No complete request, since bytes are missing and Tidegate waits for them.
  kFirst,    ///< Only the request of the case; then the connection closes.
  kBoth,     ///< The request of the case, and then that of the marker.
};

/// Proxies that may reject a request that Tidegate forwards.
enum class Stricter : std::uint8_t { kNone, kNginx, kHaproxy, kBoth };

/// Bytes that a client sends on a new connection. `$NNN` stands for the number of the case, which
/// has four digits so that lengths are right. The target of a case is `/case-$NNN`; a request for
/// `/marker-$NNN` follows it. A target `/smuggled-$NNN` must never reach an upstream.
struct FramingCase {
  std::string name;
  std::string raw;
  Want want = Want::kRefused;
  std::optional<std::string> body = {};  ///< Body of the case's request at the upstream; empty: not
                                         ///< checked.
  std::vector<std::string> absent = {};  ///< Names of fields, in lower case, that must not reach
                                         ///< the upstream.
  std::string host = {};                 ///< Value of Host that must reach the upstream; empty:
                                         ///< any.
  /// Exception from the comparison: the proxies that may reject this request although Tidegate
  /// forwards it, and why Tidegate is right.
  Stricter stricter = Stricter::kNone;
  std::string why = {};
};

using FramingCases = std::vector<FramingCase>;

/// Returns a request for the target of the case. `fields`: field lines, each with its CRLF.
[[nodiscard]] std::string Post(std::string_view fields, std::string_view body);
[[nodiscard]] std::string Get(std::string_view fields);
/// Chunked() returns a POST request with a chunked body; ChunkOf() returns one chunk.
[[nodiscard]] std::string Chunked(std::string_view body);
[[nodiscard]] std::string ChunkOf(std::string_view data);
/// Returns a second request, which a reader finds only if it mistakes the body of the first one for
/// requests.
[[nodiscard]] std::string Smuggled();

// Each of these functions returns the cases about one subject.
[[nodiscard]] FramingCases LengthCases();
[[nodiscard]] FramingCases CodingCases();
[[nodiscard]] FramingCases ChunkCases();
[[nodiscard]] FramingCases TrailerCases();
[[nodiscard]] FramingCases RequestLineCases();
[[nodiscard]] FramingCases HostCases();
[[nodiscard]] FramingCases FieldCases();
[[nodiscard]] FramingCases HopCases();
/// Cases with each byte that is not allowed in a token, in each place where one reader might skip
/// the byte and another might not.
[[nodiscard]] FramingCases ByteCases();

[[nodiscard]] FramingCases AllFramingCases();

/// Why nginx may be stricter: it takes a tab for a part of the value, so that the value is no valid
/// number or coding.
inline constexpr std::string_view kTabIsBlank =
    "RFC 9110, 5.6.3: white space around a value may be tabs; none of it is forwarded";

}  // namespace tidegate::gateway_test
