// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::fuzz {

/// What Boost.Beast's parser made of a request.
struct BeastRequest {
  bool complete = false;
  std::string error;  ///< Beast's words, where it did not get to the end.
  std::string method, target;
  int minor = -1;
  bool keep_alive = false;
  std::vector<std::pair<std::string, std::string>> fields;  ///< Without the trailers.
  std::string body;
  std::size_t consumed = 0;
};

/// Gives it all of `input` at once. Beast stays behind this line: its headers are large.
[[nodiscard]] BeastRequest ReadWithBeast(std::string_view input);

}  // namespace tidegate::fuzz
