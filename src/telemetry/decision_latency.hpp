// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tidegate {

/// How long decisions took at one reactor, from the moment at which a door asks until the answer is
/// there. One thread measures, any may read.
///
/// To look at a clock twice costs 70 ns, and a decision from memory 100: of those that are answered
/// at once every 33rd is timed, and counts as 33. (Not every 32nd: clients' pipelines have 16 or 32
/// commands, and it would always be the same one of them.) All that are answered later are timed.
class DecisionLatency {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kBuckets = 18;  ///< 1 us to 131 ms, and all above.
  static constexpr std::uint32_t kEvery = 33;

  [[nodiscard]] static constexpr double UpperSeconds(std::size_t bucket) noexcept {
    return static_cast<double>(std::uint64_t{1} << bucket) / 1e6;
  }

  /// What a question under way carries.
  struct Mark {
    bool* answered = nullptr;  ///< While the store is being asked.
    Clock::time_point began{};
    std::uint32_t weight = 0;  ///< 0: not timed.
  };

  /// Calls `ask`, which puts the question to the store. `mark` must live until Answered.
  template <class Ask>
  void Time(Mark& mark, Ask&& ask) {
    bool answered = false;
    mark.answered = &answered;
    mark.weight = 0;
    if (--left_ == 0) {
      left_ = kEvery;
      mark.weight = kEvery;
    }
    // What came last tells whether this one will have to wait: if so, its time begins here.
    if (mark.weight != 0 || late_) mark.began = Clock::now();
    const bool began = mark.weight != 0 || late_;
    ask();
    late_ = !answered;
    if (answered) return;  // The mark may be gone.
    mark.answered = nullptr;
    if (!began) mark.began = Clock::now();  // A microsecond late, once in a row of such.
    mark.weight = 1;
  }

  /// As Time, for what is always answered before `ask` returns: nothing is done for those that are
  /// not timed.
  template <class Ask>
  void TimeAtOnce(Mark& mark, Ask&& ask) {
    if (--left_ == 0) [[unlikely]] {
      left_ = kEvery;
      mark.weight = kEvery;
      mark.began = Clock::now();
    }
    ask();
  }

  /// The answer to what Time asked is there. What was not asked through Time is ignored.
  void Answered(Mark& mark) noexcept {
    if (mark.answered != nullptr) {
      *mark.answered = true;
      mark.answered = nullptr;
    }
    if (mark.weight == 0) return;
    Add(Clock::now() - mark.began, mark.weight);
    mark.weight = 0;
  }

  void Add(std::chrono::nanoseconds took, std::uint64_t times) noexcept;

  /// That took at most UpperSeconds, and more than the bucket before; the last has all above.
  [[nodiscard]] std::uint64_t count(std::size_t bucket) const noexcept {
    return counts_[bucket].load(std::memory_order_relaxed);
  }
  [[nodiscard]] double seconds() const noexcept {
    return static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)) / 1e9;
  }

 private:
  std::uint32_t left_ = kEvery;
  bool late_ = false;  ///< The last one was not answered at once.
  std::array<std::atomic<std::uint64_t>, kBuckets + 1> counts_{};
  std::atomic<std::uint64_t> nanoseconds_{0};
};

}  // namespace tidegate
