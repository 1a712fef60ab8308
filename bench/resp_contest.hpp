// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tidegate::bench {

/// A server that speaks RESP, and the command that redis-benchmark sends to it.
struct RespSide {
  std::string name;
  int port = 0;
  std::function<double()> cpu_seconds;  ///< Returns the CPU time of the server since its start.
  std::vector<std::string> command;     ///< `__rand_int__` in it is replaced by another number each
                                        ///< time.
  /// Returns true if a reply, as text, is as expected. Called before and after the measurement,
  /// because errors are faster than decisions.
  std::function<bool(const std::string&)> good;

  std::vector<double> micros = {};  ///< Microseconds of CPU time per command, one value for each
                                    ///< round.
};

/// Options of redis-benchmark.
struct RespLoad {
  int pipeline = 1;
  int connections = 50;
  std::uint64_t commands = 0;  ///< Commands in a round. It must be a multiple of `pipeline`, or
                               ///< redis-benchmark sends more.
  int core = 0;
};

/// Measures all sides in turns. Throws if a reply is not as expected or redis-benchmark fails.
void RunRespContest(const std::string& label, std::vector<RespSide*> sides, const RespLoad& load,
                    int rounds);

}  // namespace tidegate::bench
