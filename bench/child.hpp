// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/ports.hpp"

namespace tidegate::bench {

using test::FreePort;
using test::PinTo;

/// A server under measurement: a process on one core, which the destructor kills. Its output is
/// shown if BENCH_VERBOSE is set in the environment.
class Child : public test::ChildProcess {
 public:
  Child(std::vector<std::string> arguments, int core);
};

/// Waits until a server listens on the port of 127.0.0.1. Returns false after 10 s.
[[nodiscard]] bool WaitForPort(int port);

}  // namespace tidegate::bench
