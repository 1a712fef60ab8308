// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/timer.hpp"
#include "telemetry/hot_sketch.hpp"
#include "telemetry/sampler.hpp"

namespace tidegate {

/// One key among the hottest. Its true count is in [count - error, count].
struct HotKey {
  std::uint32_t slot = 0;  ///< The slot of the key's rule in RuleSlots.
  std::string identity;
  std::uint64_t count = 0;
  std::uint64_t error = 0;
};

/// The hottest keys by one measure, the highest `count` first. No other key has more than `error`.
struct HotList {
  std::uint64_t total = 0;  ///< The exact sum over all keys.
  std::uint64_t error = 0;
  std::vector<HotKey> keys;
};

/// The measure that a list of hot keys is sorted by.
enum class HotBy : std::uint8_t {
  kRequests,
  kDenials,  ///< Denials by enforced rules and by operators' bans.
  kCost,     ///< The requested cost, granted or not; at least 1 per request.
};
inline constexpr std::size_t kHotLists = 3;
[[nodiscard]] std::string_view Name(HotBy by) noexcept;  ///< `requests`, `denials`, `cost`.

/// The hottest keys of the last `span`. The rate of a key is count / span.
struct HotReport {
  std::array<HotList, kHotLists> by;
  /// The number of requests in `span`. The list by requests counts a request once for each rule.
  std::uint64_t requests = 0;
  std::chrono::milliseconds span{0};

  [[nodiscard]] const HotList& of(HotBy measure) const noexcept {
    return by[static_cast<std::size_t>(measure)];
  }
};

/// Merges the reports of several reactors, with at most `most` keys in each list. A nullptr counts
/// as an empty report. The span of the result is the longest of `parts`, whose spans differ by at
/// most half a second.
///
/// The counts and errors of a key are added. A part that does not list the key may have counted it
/// up to the part's `error`, which is added to both. A key that no part lists has at most the sum
/// of the parts' errors, and a key that is cut off here at most its count; `error` is the largest
/// of these bounds. So the bounds of HotKey and HotList hold for the result if they hold for the
/// parts.
[[nodiscard]] HotReport Merge(std::span<const std::shared_ptr<const HotReport>> parts,
                              std::size_t most);

/// Finds the keys with the most requests, denials and cost at one reactor in the last 10 to 20 s.
///
/// Counts in two windows, of which the older is cleared every 10 s, and reports both together. Each
/// window has three lists; each has four places for each of `most` keys, but at least 1,024, of
/// some 150 bytes. Fingerprints are keyed by a random secret, so clients cannot aim at the place of
/// another key.
///
/// In each half second, up to 5,000 requests and 5,000 denials are counted exactly. Further
/// requests and denials, and in a flood all of them, are sampled (see Sampler), because counting
/// them exactly would cost more than 3 % of a decision. The bounds are then wider, and fail with a
/// probability of one in a billion. Totals are always exact.
///
/// Published may be called on any thread, everything else on the reactor's.
class HotKeys final : private net::Timer {
 public:
  using Clock = net::Timer::Clock;
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr std::chrono::milliseconds kEvery{500};  ///< The time between two reports.

  enum class Outcome : std::uint8_t { kPassed, kDenied };

  /// The number of requests that are counted exactly between two reports. Each touches cold memory,
  /// which takes up to 125 ns: 1 % of a decision over HTTP, but an eighth of the far faster one in
  /// a pipeline.
  static constexpr std::uint32_t kExact = 5'000;
  /// Requests of this cost or more are always added to the list by cost. If they were sampled, one
  /// that is skipped, or counted 32 times, could outweigh all others together.
  static constexpr std::uint64_t kLargeCost = 64;

  /// `most` is the largest number of keys in each list of a report, at least 1.
  HotKeys(net::Timers& timers, std::size_t most, Clock::time_point now = Clock::now(),
          std::uint32_t exact = kExact);

  /// Counts one decision. REQUIRES: cost >= 1.
  void Count(std::uint32_t slot, std::string_view identity, std::int64_t cost,
             Outcome outcome) noexcept {
    // Most calls only count in the samplers, which keep the totals.
    const bool request_due = requests_.Count();
    const bool denial_due = outcome == Outcome::kDenied && denials_.Count();
    if (request_due || denial_due || cost != 1) [[unlikely]]
      Record({slot, identity, static_cast<std::uint64_t>(cost), request_due, denial_due});
  }

  /// Counts one request once, however many rules decided it.
  void CountRequest() noexcept { ++decided_requests_; }

  /// Returns the last report, which is at most half a second old; never nullptr.
  [[nodiscard]] std::shared_ptr<const HotReport> Published() const;

  /// Runs every kEvery: publishes a new report, and begins a new window every kWindow.
  void Tick(Clock::time_point now);

 private:
  /// The totals by HotBy, and then the number of requests, in which each request counts once.
  using Totals = std::array<std::uint64_t, kHotLists + 1>;

  struct Counts {
    explicit Counts(std::size_t places) : sketch(places) {}
    HotSketch sketch;
    std::uint64_t largest = 0;  ///< The largest sampled weight; 0: nothing was sampled.

    void Add(const SketchKey& key, std::uint64_t times, std::uint64_t weight) noexcept;
    /// Get and Bound include the error of sampling.
    [[nodiscard]] HotSketch::Estimate Get(std::uint64_t fingerprint) const noexcept;
    [[nodiscard]] std::uint64_t Bound(std::size_t place) const noexcept;
  };
  struct Window {
    explicit Window(std::size_t places) : lists{Counts(places), Counts(places), Counts(places)} {}
    std::array<Counts, kHotLists> lists;
    /// True after the first cost that is not 1. Until then, each key has the same count in the list
    /// by cost as in the list by requests.
    bool cost_apart = false;
    std::uint64_t largest_sampled_cost = 1;

    void Clear() noexcept;
    [[nodiscard]] Counts& of(HotBy by) noexcept { return lists[static_cast<std::size_t>(by)]; }
    /// Returns the counts that a report uses.
    [[nodiscard]] const Counts& ReportedBy(HotBy by) const noexcept;
  };
  struct Request {
    std::uint32_t slot;
    std::string_view identity;
    std::uint64_t cost;
    bool request_due;  ///< requests_.Weight() must be called.
    bool denial_due;   ///< denials_.Weight() must be called.
  };

  void OnTimer(Clock::time_point now) override;
  void Record(const Request& request) noexcept;
  /// Records a cost that is not 1.
  void RecordCost(const Request& request) noexcept;
  /// Return the totals since the start, and those of both windows together.
  [[nodiscard]] Totals AllTotals() const noexcept;
  [[nodiscard]] Totals WindowTotals() const noexcept;
  /// Records in the current window the largest weight of its sampled requests.
  void NoteSampling() noexcept;
  [[nodiscard]] HotList ListBy(HotBy by, std::uint64_t total) const;
  void Rotate(Clock::time_point now) noexcept;
  [[nodiscard]] SketchKey KeyOf(const Request& request) const noexcept;

  // The members that every decision touches are close together.
  alignas(64) Sampler requests_;  ///< Samples requests and their costs.
  Sampler denials_;
  std::uint64_t extra_cost_ = 0;  ///< Sum of all costs above 1 per request, since the start.
  std::uint64_t decided_requests_ = 0;
  std::array<std::unique_ptr<Window>, 2> windows_;  ///< The current window, and the previous one.
  Totals at_begin_{};                               ///< AllTotals() when the current window began.
  Totals at_begin_before_{};                        ///< AllTotals() when the previous window began.
  const std::size_t most_;
  alignas(64) std::array<unsigned char, 192> secret_;
  std::uint64_t slot_secret_;
  Clock::time_point began_;         ///< The time at which the current window began.
  Clock::time_point began_before_;  ///< The time at which the previous window began.
  bool quiet_ = true;               ///< The last report was empty.
  mutable std::mutex mutex_;
  std::shared_ptr<const HotReport> published_;  ///< Guarded by mutex_.
};

}  // namespace tidegate
