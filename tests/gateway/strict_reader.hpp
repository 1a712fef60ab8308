// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway_test {

/// Tells whether bytes begin with a message whose end all readers must agree on.
enum class Frame : std::uint8_t {
  kWhole,
  kPartial,  ///< The message is incomplete but valid so far.
  kBad,      ///< Another reader might see a different request in these bytes.
};

/// One HTTP/1.x message, as an independent reader parses it.
struct Message {
  Frame frame = Frame::kPartial;
  std::string why;                                          ///< Reason for Frame::kBad.
  std::string method, target;                               ///< Set for requests only; empty for
                                                            ///< responses.
  int status = 0;                                           ///< Set for responses only; 0 for
                                                            ///< requests.
  std::vector<std::pair<std::string, std::string>> fields;  ///< Names in lower case, and values.
  bool head_whole = false;
  std::string body;      ///< Decoded body, as far as it has arrived.
  std::size_t size = 0;  ///< Length of a complete message in bytes of the input.

  [[nodiscard]] int Count(std::string_view name) const;
  /// Returns the value of the first field with that name; empty if there is none.
  [[nodiscard]] std::string Field(std::string_view name) const;
};

/// Parses a request without any code of the product, in the plainest way: it finds the end of the
/// head, splits it at CRLF and checks each line. Everything that two readers could understand
/// differently is kBad: bare CR or LF, obs-fold, a control character, Content-Length with
/// Transfer-Encoding, either of them or Host twice, any coding but `chunked`, any number with a
/// character other than digits.
[[nodiscard]] Message ReadRequest(std::string_view bytes);

/// Facts about a response that its bytes do not contain.
struct AnswerContext {
  bool after_head = false;
  bool closed = false;  ///< The connection ended after the bytes.
};
[[nodiscard]] Message ReadAnswer(std::string_view bytes, AnswerContext context);

/// Returns `bytes` for failure messages, with control characters as `\r` or `\x0b`.
[[nodiscard]] std::string Printable(std::string_view bytes);

}  // namespace tidegate::gateway_test
