// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tidegate::bench {

/// A server under measurement: a child process on one core, killed when this goes.
class Child {
 public:
  Child(std::vector<std::string> arguments, int core);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// User and system time of its threads so far, in seconds; from /proc.
  [[nodiscard]] double CpuSeconds() const;
  [[nodiscard]] std::uint64_t ResidentBytes() const;
  [[nodiscard]] bool running() const;
  void Signal(int signal) const;
  /// Waits for its end; its exit code, or -1 after a signal.
  int Wait();

 private:
  pid_t pid_ = -1;
};

/// A port on 127.0.0.1 that was free a moment ago.
[[nodiscard]] int FreePort();
/// Until somebody listens there, at most 5 s; false then.
[[nodiscard]] bool WaitForPort(int port);
/// Runs the calling thread on this core only.
void PinSelf(int core);

}  // namespace tidegate::bench
