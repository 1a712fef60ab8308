// SPDX-License-Identifier: Apache-2.0
// The real binary as a process, and files for it. The process uses the real clock, so tests poll
// with a deadline.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "service/fixture.hpp"
#include "support/files.hpp"
#include "support/tidegate_process.hpp"
#include "support/wait.hpp"

namespace tidegate::service {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;
namespace fs = std::filesystem;

/// A process of the binary under test, with the addresses of its listeners.
class Tidegate : public test::TidegateProcess {
 public:
  using TidegateProcess::TidegateProcess;
  /// `descriptors` is the limit of open file descriptors of the process; 0: the limit of the test.
  Tidegate(const fs::path& log, std::vector<std::string> arguments, rlim_t descriptors = 0)
      : TidegateProcess(std::move(arguments), {.output = log, .prepare = [descriptors] {
                                                 const rlimit limit{descriptors, descriptors};
                                                 if (descriptors != 0)
                                                   setrlimit(RLIMIT_NOFILE, &limit);
                                               }}) {}

  net::Endpoint Api() { return At("HTTP API"); }
  net::Endpoint Admin() { return At("admin"); }
  net::Endpoint Resp() { return At("Redis protocol"); }
  net::Endpoint Gateway() { return At("gateway"); }

 private:
  net::Endpoint At(std::string_view listener) {
    return net::Endpoint::Parse("127.0.0.1:" + std::to_string(Port(listener))).value();
  }
};

}  // namespace tidegate::service
