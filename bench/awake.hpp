// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <atomic>
#include <initializer_list>
#include <thread>
#include <vector>

namespace tidegate::bench {

/// Keeps cores from going idle during its lifetime: runs a thread with the lowest priority
/// (SCHED_IDLE) on each.
///
/// An idle virtual core is woken up through its host, and the time of this counts as time of the
/// process that is woken: 100 us and more on the machine on which this was written, six times the
/// time of a batch with one key. Without this class, that time would be charged to the side that
/// leaves Redis idle, which is Tidegate's.
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
        // Without SCHED_IDLE the thread would take CPU time from the processes under measurement.
        if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) return;
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
