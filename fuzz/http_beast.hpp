// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::fuzz {

/// What Boost.Beast's parser made of a message.
struct BeastMessage {
  bool complete = false;
  std::string error;           ///< Beast's words, where it did not get to the end.
  std::string method, target;  ///< Of a request.
  int status = 0;              ///< Of a response, as the next one.
  std::string reason;
  int minor = -1;
  bool keep_alive = false;
  std::vector<std::pair<std::string, std::string>> fields;  ///< Without the trailers.
  std::string body;
  std::size_t consumed = 0;
};

/// Gives it all of `input` at once. Beast stays behind this line: its headers are large.
[[nodiscard]] BeastMessage ReadWithBeast(std::string_view input);

enum class BeastBody : unsigned char {
  kByFields,    ///< As the head says.
  kNone,        ///< After HEAD.
  kUntilClose,  ///< As the head says, and the connection ends with the input.
};
[[nodiscard]] BeastMessage ReadResponseWithBeast(std::string_view input, BeastBody body);

}  // namespace tidegate::fuzz
