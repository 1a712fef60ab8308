// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as commands of a Redis client, one after another. The result must not depend on
// how the input is split. A command that came as an array, encoded again, must give the consumed
// bytes, since a length has only one spelling.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "unit/net/resp_connection.hpp"

namespace tidegate::net {
namespace {

using Progress = RespCommandParser::Progress;

/// Inputs up to this size are also read byte by byte; each step copies all bytes before it.
constexpr std::size_t kByteByByte = 512;

/// Limits that are so small that inputs of a fuzzer's size reach each of them.
constexpr RespLimits kTight{.elements = 4, .bulk_bytes = 12, .inline_bytes = 24};

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "resp_fuzz: %s\n", what);
  std::abort();
}

std::vector<std::size_t> EveryByte(std::size_t size) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < size; ++i) cuts.push_back(i);
  return cuts;
}

std::vector<std::size_t> RandomCuts(std::size_t size, std::minstd_rand& random) {
  std::vector<std::size_t> cuts(1 + random() % 4);
  for (std::size_t& cut : cuts) cut = random() % (size + 1);
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

void CheckCommand(std::string_view consumed, const std::vector<std::string>& arguments,
                  const RespLimits& limits) {
  Require(!arguments.empty() && arguments.size() <= limits.elements, "elements");
  for (const std::string& argument : arguments) {
    Require(argument.size() <= limits.bulk_bytes, "bulk_bytes");
  }
  if (consumed.starts_with('*')) {
    Require(Encoded(arguments) == consumed, "encoded again, it is another");
  } else {
    Require(consumed.size() <= limits.inline_bytes + 1, "inline_bytes");
    Require(consumed.find('\n') == consumed.size() - 1, "an inline command is not one line");
  }
}

void Check(std::string_view input, const RespLimits& limits, std::minstd_rand& random) {
  const auto whole = ReadCommands(input, limits);
  for (int i = 0; i < 3; ++i) {
    const auto pieces = ReadCommands(input, limits, RandomCuts(input.size(), random));
    Require(pieces == whole, "pieces differ");
  }
  if (input.size() <= kByteByByte) {
    Require(ReadCommands(input, limits, EveryByte(input.size())) == whole, "byte by byte differs");
  }
  for (const CommandAnswer& answer : whole) {
    if (answer.progress == Progress::kBad) {
      Require(answer.problem.starts_with("Protocol error: "), "bad without a word");
      Require(answer.problem.find_first_of("\r\n") == std::string::npos, "a line in a problem");
    }
    if (answer.consumed == 0) break;
    Require(answer.consumed <= input.size(), "consumed more than there is");
    if (answer.progress == Progress::kCommand) {
      CheckCommand(input.substr(0, answer.consumed), answer.arguments, limits);
    }
    input.remove_prefix(answer.consumed);
  }
}

}  // namespace
}  // namespace tidegate::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidegate::net;
  if (size > 8192) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // The splits come from a hash of the input, so that the corpus is plain RESP.
  std::minstd_rand random(static_cast<unsigned>(std::hash<std::string_view>{}(input)));
  Check(input, {}, random);
  Check(input, kTight, random);
  return 0;
}
