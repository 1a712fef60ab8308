// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tidegate::bench {

/// A server that speaks RESP, and the command that redis-benchmark sends it.
struct RespSide {
  std::string name;
  int port = 0;
  std::function<double()> cpu_seconds;  ///< Of the server so far.
  std::vector<std::string> command;     ///< `__rand_int__` in it is another number each time.
  /// Of an answer as text, before and after it is measured: errors are quick.
  std::function<bool(const std::string&)> good;

  std::vector<double> micros = {};  ///< CPU time per command, one per round.
};

/// How redis-benchmark is called.
struct RespLoad {
  int pipeline = 1;
  int connections = 50;
  std::uint64_t commands = 0;  ///< In a round; a multiple of `pipeline`, or more are sent.
  int core = 0;
};

/// Measures all in turns. Throws where an answer is not good, or redis-benchmark fails.
void RunRespContest(const std::string& label, std::vector<RespSide*> sides, const RespLoad& load,
                    int rounds);

}  // namespace tidegate::bench
