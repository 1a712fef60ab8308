// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include "redis/record.hpp"

namespace tidegate::redis_test {

/// Records the times at which threads of this test were ready to run but did not get a CPU. Tests
/// may run beside a compiler, and a request that was in flight at such a moment says nothing about
/// Tidegate's own delays. The kernel counts this waiting time for every thread; Canary reads it
/// every 2 ms, for this process and all its child processes.
class Canary {
 public:
  Canary();
  ~Canary();
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  void Stop();
  /// Returns the requests that were not in flight while a thread waited for a CPU. REQUIRES: Stop()
  /// was called.
  [[nodiscard]] Records Undisturbed(const Records& records) const;
  /// Returns for how many microseconds between the two times a thread waited for a CPU.
  [[nodiscard]] std::int64_t LateMicros(std::int64_t from_us, std::int64_t to_us) const;

 private:
  struct Late {
    std::int64_t from_us;
    std::int64_t to_us;
  };
  struct Task {
    int fd = -1;  ///< Descriptor of the task's `schedstat` file.
    std::int64_t waited_ns = -1;
  };
  void Run();
  /// Adds the threads that started since the last call.
  void Find();
  void FindTasks(pid_t pid);
  /// Returns for how many nanoseconds the task has waited for a CPU since the last call; -1: the
  /// task has ended.
  static std::int64_t WaitedNs(Task& task);

  std::atomic<bool> stop_{false};
  std::map<pid_t, Task> tasks_;
  std::vector<Late> late_;
  std::thread thread_;
};

}  // namespace tidegate::redis_test
