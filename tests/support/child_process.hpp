// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tidegate::test {

/// A program that runs beside the test and is killed with it.
class ChildProcess {
 public:
  struct Options {
    std::filesystem::path output = "/dev/null";  ///< The program's output is appended to this file.
    std::vector<std::string> environment = {};   ///< `NAME=value`, added.
    int core = -1;                               ///< The program runs on this core only; -1: any.
    /// Called in the new process before the program starts.
    std::function<void()> prepare = {};
  };

  ChildProcess() = default;  ///< No program.
  /// Starts a program, which is found as a shell finds it.
  ChildProcess(std::vector<std::string> arguments, const Options& options);
  explicit ChildProcess(std::vector<std::string> arguments)
      : ChildProcess(std::move(arguments), Options{}) {}
  ~ChildProcess() { Kill(); }
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Returns true until the end of the program has been noticed, by alive(), Wait() or Kill().
  [[nodiscard]] bool started() const noexcept { return pid_ > 0; }
  /// Returns true if the program still runs.
  [[nodiscard]] bool alive();
  /// The signal that ended the program, once alive() or Wait() has noticed it; 0: none.
  [[nodiscard]] int killed_by() const noexcept;

  void Signal(int signal) const;
  /// Stops all threads of the program, and returns when they have stopped.
  void Pause() const;
  /// SIGKILL; returns when the program has ended. The output stays.
  void Kill();
  /// Waits for the program's end. Returns its exit code; -1 if a signal ended it, or if it still
  /// runs after `patience`.
  int Wait(std::chrono::milliseconds patience = std::chrono::hours{1});

  /// The time that the program's threads have had a core.
  [[nodiscard]] std::chrono::nanoseconds CpuTime() const;
  [[nodiscard]] double CpuSeconds() const {
    return std::chrono::duration<double>(CpuTime()).count();
  }
  [[nodiscard]] std::int64_t ResidentBytes() const;
  [[nodiscard]] int Descriptors() const;

 private:
  pid_t pid_ = -1;
  int status_ = 0;  ///< As waitpid reported it.
};

/// Runs the calling thread, or a process before exec, on this core only.
void PinTo(int core);

}  // namespace tidegate::test
