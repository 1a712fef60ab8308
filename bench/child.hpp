// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/ports.hpp"

namespace tidegate::bench {

using test::FreePort;
using test::PinTo;

/// A server under measurement: a process on one core, killed with this object. With BENCH_VERBOSE
/// in the environment its output is shown.
class Child : public test::ChildProcess {
 public:
  Child(std::vector<std::string> arguments, int core);
};

/// Returns false if nothing listens on the port of 127.0.0.1 within 10 s.
[[nodiscard]] bool WaitForPort(int port);

}  // namespace tidegate::bench
