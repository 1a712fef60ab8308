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
    /// Added environment variables, written `NAME=value`.
    std::vector<std::string> environment = {};
    int core = -1;  ///< The program runs on this core only; -1: any.
    /// Called in the new process before the program starts.
    std::function<void()> prepare = {};
  };

  ChildProcess() = default;  ///< Holds no program.
  /// Starts the program; its path is searched as a shell does.
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
  /// Returns the signal that ended the program; 0 if none did, or if neither alive() nor Wait() has
  /// noticed the end.
  [[nodiscard]] int killed_by() const noexcept;

  void Signal(int signal) const;
  /// Stops all threads of the program, and returns when they have stopped.
  void Pause() const;
  /// Sends SIGKILL and returns when the program has ended. The output file remains.
  void Kill();
  /// Waits for the program's end. Returns its exit code; -1 if a signal ended it, or if it still
  /// runs after `patience`.
  int Wait(std::chrono::milliseconds patience = std::chrono::hours{1});

  /// Returns the CPU time of all threads of the program.
  [[nodiscard]] std::chrono::nanoseconds CpuTime() const;
  [[nodiscard]] double CpuSeconds() const {
    return std::chrono::duration<double>(CpuTime()).count();
  }
  [[nodiscard]] std::int64_t ResidentBytes() const;
  [[nodiscard]] int Descriptors() const;

 private:
  pid_t pid_ = -1;
  int status_ = 0;  ///< Exit status that waitpid reported.
};

/// Binds the calling thread to this core; a process that it then executes inherits this.
void PinTo(int core);

}  // namespace tidegate::test
