// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <atomic>
#include <initializer_list>
#include <thread>
#include <vector>

namespace tidegate::bench {

/// Keeps cores from falling asleep while this lives: a thread on each that gives way to everybody
/// else (SCHED_IDLE).
///
/// A virtual core that was idle wakes up through its host, and what that takes is counted as time
/// of the process that is woken: 100 us and more on the machine this was written on, six times what
/// a batch of one key takes. It would be charged to the side that leaves Redis idle, which is ours.
class AwakeCores {
 public:
  AwakeCores(std::initializer_list<int> cores) {
    for (const int core : cores) {
      threads_.emplace_back([this, core] {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<std::size_t>(core), &set);
        sched_setaffinity(0, sizeof set, &set);
        const sched_param none{};
        if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) return;  // It would take others' time.
        while (!over_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~AwakeCores() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  AwakeCores(const AwakeCores&) = delete;
  AwakeCores& operator=(const AwakeCores&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

}  // namespace tidegate::bench
