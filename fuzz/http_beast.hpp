// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::fuzz {

/// A message as Boost.Beast's parser reads it.
struct BeastMessage {
  bool complete = false;
  std::string error;           ///< Beast's error message if it did not reach the end of the
                               ///< message.
  std::string method, target;  ///< Set for requests only.
  int status = 0;              ///< `status` and the next member are set for responses only.
  std::string reason;
  int minor = -1;
  bool keep_alive = false;
  std::vector<std::pair<std::string, std::string>> fields;  ///< Names and values of the header
                                                            ///< fields, without the trailers.
  std::string body;
  std::size_t consumed = 0;
};

/// Passes all of `input` to Beast at once. This header does not include Beast, whose headers are
/// large.
[[nodiscard]] BeastMessage ReadWithBeast(std::string_view input);

enum class BeastBody : unsigned char {
  kByFields,    ///< The head defines where the body ends.
  kNone,        ///< No body, as after HEAD.
  kUntilClose,  ///< The head defines where the body ends, and the connection ends with the input.
};
[[nodiscard]] BeastMessage ReadResponseWithBeast(std::string_view input, BeastBody body);

}  // namespace tidegate::fuzz
