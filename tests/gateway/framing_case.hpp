// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway_test {

/// What of a case's bytes must reach the upstream through tidegate.
enum class Want : std::uint8_t {
  kRefused,  ///< Nothing whole; the client is answered 4xx or 5xx, and the connection closes.
  kWaits,    ///< Nothing whole, since more bytes are missing.
  kFirst,    ///< The case's own request, and then the connection closes.
  kBoth,     ///< The case's own request, then the marker's.
};

/// Who may refuse what tidegate forwards.
enum class Stricter : std::uint8_t { kNone, kNginx, kHaproxy, kBoth };

/// Bytes that a client sends on a connection of its own. `$NNN` stands for the case's number, which
/// has four digits, so that lengths are right; targets are `/case-$NNN`; a request for
/// `/marker-$NNN` is sent behind them. A target
/// `/smuggled-$NNN` must never reach an upstream.
struct FramingCase {
  std::string name;
  std::string raw;
  Want want = Want::kRefused;
  std::optional<std::string> body = {};  ///< Of the case's request, where the upstream must see it.
  std::vector<std::string> absent = {};  ///< Fields that must not reach the upstream; lower case.
  std::string host = {};                 ///< What Host must reach it; empty: any.
  /// The allow-list: who may refuse this although tidegate forwards it, and why that is right.
  Stricter stricter = Stricter::kNone;
  std::string why = {};
};

using FramingCases = std::vector<FramingCase>;

/// A request for the case's target: `fields` each with its CRLF.
[[nodiscard]] std::string Post(std::string_view fields, std::string_view body);
[[nodiscard]] std::string Get(std::string_view fields);
/// A POST with a chunked body, and one chunk of such.
[[nodiscard]] std::string Chunked(std::string_view body);
[[nodiscard]] std::string ChunkOf(std::string_view data);
/// A request that a reader finds who takes another's body for requests.
[[nodiscard]] std::string Smuggled();

// The table, by what it is about.
[[nodiscard]] FramingCases LengthCases();
[[nodiscard]] FramingCases CodingCases();
[[nodiscard]] FramingCases ChunkCases();
[[nodiscard]] FramingCases TrailerCases();
[[nodiscard]] FramingCases RequestLineCases();
[[nodiscard]] FramingCases HostCases();
[[nodiscard]] FramingCases FieldCases();
[[nodiscard]] FramingCases HopCases();
/// Each byte that no token has, in each place where one reader might skip it and another not.
[[nodiscard]] FramingCases ByteCases();

[[nodiscard]] FramingCases AllFramingCases();

/// nginx takes a tab for a part of the value, which then is no number or coding to it.
inline constexpr std::string_view kTabIsBlank =
    "RFC 9110, 5.6.3: white space around a value may be tabs; none of it is forwarded";

}  // namespace tidegate::gateway_test
