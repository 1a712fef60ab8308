// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "admin/reload.hpp"

namespace tidegate {

/// Operators who wait for a reload. However many ask, one is carried out at a time and one waits:
/// whoever asks before it begins is told what became of that one. Thread-safe.
class ReloadQueue {
 public:
  using Done = std::function<void(const ReloadReport&)>;
  struct Waiting {
    std::vector<std::string> by;  ///< Each name once.
    std::vector<Done> done;
  };

  /// True: nobody waited, so that one must be begun.
  [[nodiscard]] bool Add(const std::string& by, Done done) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(waiting_.by, by) == waiting_.by.end()) waiting_.by.push_back(by);
    waiting_.done.push_back(std::move(done));
    return waiting_.done.size() == 1;
  }
  /// One begins: who waits for it. From now on they wait for the next one.
  [[nodiscard]] Waiting Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(waiting_, {});
  }

 private:
  std::mutex mutex_;
  Waiting waiting_;
};

}  // namespace tidegate
