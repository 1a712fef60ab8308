// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/strict_reader.hpp"

namespace tidegate::gateway_test {

/// Number of the first case. All numbers of cases have four digits.
inline constexpr std::size_t kFirstNumber = 1000;
/// Returns `text` with each `$NNN` replaced by the number of the case `index`.
[[nodiscard]] std::string Numbered(std::string text, std::size_t index);

/// Bytes to send on a new connection, and the response that ends the wait.
struct Exchange {
  std::string send;
  /// The value of X-Answer-To in the last response to wait for; empty: wait for one response only.
  std::string until;
  bool after_head = false;  ///< The first response has no body, as after HEAD.
  std::string from = {};    ///< Loopback address that the client sends from; empty: any.
};

/// Bytes that a client received, and how the exchange ended.
struct Seen {
  enum class End : std::uint8_t {
    kAnswered,  ///< The last expected response arrived.
    kClosed,    ///< The server closed or reset the connection before the last expected response.
    kSilent,    ///< No byte arrived for seconds, and the connection is still open.
  };
  std::vector<Message> answers;  ///< Complete final responses.
  End end = End::kSilent;
  std::string rest;  ///< Bytes received after the last complete response.
  std::string why;   ///< Why `rest` is not a valid response; empty: it is valid so far.
  Message last;      ///< The incomplete response that `rest` is a part of, if any.

  /// Returns a description for failure messages.
  [[nodiscard]] std::string Text() const;
};

/// Runs all exchanges with the server on 127.0.0.1:`port`, many at a time, since some servers wait
/// for missing bytes until their timeout. Gives up only when no exchange has made progress for
/// kSilence, so that a slow machine does not fail the test.
[[nodiscard]] std::vector<Seen> RunAll(int port, const std::vector<Exchange>& exchanges);
[[nodiscard]] Seen RunOne(int port, const Exchange& exchange);

}  // namespace tidegate::gateway_test
