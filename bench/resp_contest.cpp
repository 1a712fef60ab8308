// SPDX-License-Identifier: Apache-2.0
#include "resp_contest.hpp"

#include <stdexcept>
#include <utility>

#include "child.hpp"
#include "redis/redis_server.hpp"
#include "rounds.hpp"

namespace tidegate::bench {
namespace {

/// Number of keys: `__rand_int__` is 0 to 99,999.
constexpr const char* kKeys = "100000";

void Load(const RespSide& side, const RespLoad& load) {
  std::vector<std::string> arguments = {"redis-benchmark",
                                        "-h",
                                        "127.0.0.1",
                                        "-p",
                                        std::to_string(side.port),
                                        "-q",
                                        "-r",
                                        kKeys,
                                        "-P",
                                        std::to_string(load.pipeline),
                                        "-c",
                                        std::to_string(load.connections),
                                        "-n",
                                        std::to_string(load.commands)};
  arguments.insert(arguments.end(), side.command.begin(), side.command.end());
  if (Child(std::move(arguments), load.core).Wait() != 0) {
    throw std::runtime_error("redis-benchmark failed on " + side.name);
  }
}

/// Checks the reply of a side. redis-benchmark stops at an error, but does not report any other
/// reply.
void CheckAnswer(const RespSide& side) {
  const std::string answer = redis_test::RedisClient(side.port).Text(side.command);
  if (!side.good(answer)) throw std::runtime_error(side.name + " replies " + answer);
}

}  // namespace

void RunRespContest(const std::string& label, std::vector<RespSide*> sides, const RespLoad& load,
                    int rounds) {
  for (RespSide* const side : sides) {
    side->micros.clear();
    Load(*side, load);  // Warm-up, which is not measured; most of the keys exist afterwards.
    CheckAnswer(*side);
  }
  Turns turns(sides.size());
  for (int round = 0; round < rounds; ++round) {
    ShowProgress(label, round, rounds);
    for (const std::size_t i : turns.Next()) {
      RespSide& side = *sides[i];
      const double before = side.cpu_seconds();
      Load(side, load);
      const double used = side.cpu_seconds() - before;
      side.micros.push_back(used * 1e6 / static_cast<double>(load.commands));
    }
  }
  for (const RespSide* const side : sides) CheckAnswer(*side);
}

}  // namespace tidegate::bench
