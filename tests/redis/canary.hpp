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

/// Tells when this machine had no time for us. Tests may run beside a compiler, and what was on
/// its way while a process of ours was ready to run and had to wait says nothing about Tidegate's
/// own delays. The kernel counts that waiting for every thread; this reads it every two
/// milliseconds, for this process and all that it started.
class Canary {
 public:
  Canary();
  ~Canary();
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  void Stop();
  /// Returns the requests that were not in flight while a thread had to wait. Stop it first.
  [[nodiscard]] Records Undisturbed(const Records& records) const;
  /// Returns for how long between the two times a thread had to wait.
  [[nodiscard]] std::int64_t LateMicros(std::int64_t from_us, std::int64_t to_us) const;

 private:
  struct Late {
    std::int64_t from_us;
    std::int64_t to_us;
  };
  struct Task {
    int fd = -1;  ///< Its schedstat.
    std::int64_t waited_ns = -1;
  };
  void Run();
  /// Looks who is there now.
  void Find();
  void FindTasks(pid_t pid);
  /// How long the task has waited since the last look; -1: it is gone.
  static std::int64_t WaitedNs(Task& task);

  std::atomic<bool> stop_{false};
  std::map<pid_t, Task> tasks_;
  std::vector<Late> late_;
  std::thread thread_;
};

}  // namespace tidegate::redis_test
