// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway_test {

/// Whether bytes begin with a message whose extent everybody must agree on.
enum class Frame : std::uint8_t {
  kWhole,
  kPartial,  ///< It may become one.
  kBad,      ///< Another reader might see a different request in it.
};

/// One HTTP/1.x message, as an independent reader sees it.
struct Message {
  Frame frame = Frame::kPartial;
  std::string why;                                          ///< Of kBad.
  std::string method, target;                               ///< Of a request.
  int status = 0;                                           ///< Of a response.
  std::vector<std::pair<std::string, std::string>> fields;  ///< Names in lower case.
  bool head_whole = false;
  std::string body;      ///< Decoded, as far as it has come.
  std::size_t size = 0;  ///< Of kWhole, in bytes of the input.

  [[nodiscard]] int Count(std::string_view name) const;
  /// The first of that name, or nothing.
  [[nodiscard]] std::string Field(std::string_view name) const;
};

/// Shares no code with the product, and is as plain as it can be: it finds the head's end, splits
/// it at CRLF and looks at each line. Anything that two readers could take for different things is
/// bad: bare CR or LF, obs-fold, a control character, Content-Length with Transfer-Encoding, either
/// or Host twice, any coding but `chunked`, any number with another character than digits.
[[nodiscard]] Message ReadRequest(std::string_view bytes);

/// What else is known about a response.
struct AnswerContext {
  bool after_head = false;
  bool closed = false;  ///< The connection ended behind the bytes.
};
[[nodiscard]] Message ReadAnswer(std::string_view bytes, AnswerContext context);

/// For failures: control characters as `\r`, `\x0b`.
[[nodiscard]] std::string Printable(std::string_view bytes);

}  // namespace tidegate::gateway_test
