// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "support/wait.hpp"

namespace tidegate::bench {

Child::Child(std::vector<std::string> arguments, int core)
    : ChildProcess(std::move(arguments),
                   {.output = std::getenv("BENCH_VERBOSE") == nullptr ? "/dev/null" : "/dev/stderr",
                    .core = core}) {}

bool WaitForPort(int port) {
  return test::WaitUntil([port] {
    const int socket = test::ConnectTo(port);
    if (socket >= 0) close(socket);
    return socket >= 0;
  });
}

}  // namespace tidegate::bench
