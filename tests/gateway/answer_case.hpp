// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gateway/raw_upstream.hpp"

namespace tidegate::gateway_test {

/// What the client of tidegate must get.
enum class Result : std::uint8_t {
  kBadGateway,  ///< 502 of tidegate's own.
  kCut,         ///< An answer that is visibly not whole, or 502: the head may have been sent.
  kPasses,      ///< The answer, whole.
};

/// Bytes that an upstream answers with. `$NNN` stands for the case's number.
struct AnswerCase {
  std::string name;
  std::string bytes;
  Result result = Result::kBadGateway;
  Scripted::Then then = Scripted::Then::kKeep;
  int status = 200;                      ///< Of kPasses.
  std::optional<std::string> body = {};  ///< Of kPasses.
  std::string method = "GET";
  std::string version = "HTTP/1.1";
};

using AnswerCases = std::vector<AnswerCase>;

[[nodiscard]] AnswerCases BadHeads();
[[nodiscard]] AnswerCases BadFramings();
[[nodiscard]] AnswerCases BadBodies();
[[nodiscard]] AnswerCases SoundAnswers();

}  // namespace tidegate::gateway_test
