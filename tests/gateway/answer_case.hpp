// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gateway/raw_upstream.hpp"

namespace tidegate::gateway_test {

/// Result that the client of Tidegate must get for an upstream's response.
enum class Result : std::uint8_t {
  kBadGateway,  ///< A 502 response that Tidegate itself writes.
  kCut,         ///< A visibly incomplete response, or 502: Tidegate may already have sent the head.
  kPasses,      ///< The complete response.
};

/// Bytes that an upstream sends as its response. `$NNN` stands for the number of the case.
struct AnswerCase {
  std::string name;
  std::string bytes;
  Result result = Result::kBadGateway;
  Scripted::Then then = Scripted::Then::kKeep;
  int status = 200;                      ///< Status that the client gets, if `result` is kPasses.
  std::optional<std::string> body = {};  ///< Body that the client gets, if `result` is kPasses;
                                         ///< empty: any body.
  std::string method = "GET";
  std::string version = "HTTP/1.1";
};

using AnswerCases = std::vector<AnswerCase>;

[[nodiscard]] AnswerCases BadHeads();
[[nodiscard]] AnswerCases BadFramings();
[[nodiscard]] AnswerCases BadBodies();
[[nodiscard]] AnswerCases SoundAnswers();

}  // namespace tidegate::gateway_test
