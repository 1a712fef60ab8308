// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "net/timer.hpp"
#include "telemetry/hot_pace.hpp"
#include "telemetry/hot_report.hpp"
#include "telemetry/hot_sketch.hpp"

namespace tidegate {

/// Which keys ask most, are denied most and cost most at one reactor, over the last 10 to 20 s.
///
/// Counted in two windows, of which the older is forgotten every 10 s; reported together. Memory is
/// bounded by the number of keys to be reported, whoever comes: four places for each, 1,024 at
/// least, of some 150 bytes in each of the three views and two windows. Fingerprints are keyed by a
/// random secret, so nobody can aim at the places of another.
///
/// Up to 5,000 requests in half a second, and as many denials, are counted one by one: bounds are
/// certain. Of those beyond, and of all in a flood, one of 32 is counted (`HotPace`), since they
/// would cost more than 3 % of a decision; bounds are wider then, and each holds but for a chance
/// of one in a billion. Totals are exact in any case.
///
/// Count is for the reactor's thread, Published for any.
class HotKeys final : private net::Timer {
 public:
  using Clock = net::Timer::Clock;
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr std::chrono::milliseconds kEvery{500};  ///< A new report.

  enum class Outcome : std::uint8_t { kPassed, kDenied };

  /// Requests that are counted one by one between two reports, unless they are very many. Each
  /// costs up to 125 ns, since what is touched seldom is cold: a percent of a decision over HTTP,
  /// but an eighth of one in a pipeline, and only those come so fast.
  static constexpr std::uint32_t kExact = 5'000;

  /// Requests that cost so much are counted one by one in any case, by their cost: one of them that
  /// is left out, or stands for 32, would be more than all others together.
  static constexpr std::uint64_t kDear = 64;

  /// `most`: keys in each list of a report, at least 1.
  HotKeys(net::Timers& timers, std::size_t most, Clock::time_point now = Clock::now(),
          std::uint32_t exact = kExact);

  /// REQUIRES: cost >= 1.
  void Count(std::uint32_t slot, std::string_view identity, std::int64_t cost,
             Outcome outcome) noexcept {
    // Most are done with here: the paces know how many came.
    const bool asked = requests_.Due();
    const bool refused = outcome == Outcome::kDenied && denials_.Due();
    if (asked || refused || cost != 1) [[unlikely]]
      Add({slot, identity, static_cast<std::uint64_t>(cost), asked, refused});
  }

  /// Counts one request, however many rules decided it.
  void CountRequest() noexcept { ++requests_total_; }

  /// The last report; never nullptr. It is up to half a second old, and grows no older than that:
  /// when nobody comes, its counts become 0 with time.
  [[nodiscard]] std::shared_ptr<const HotReport> Published() const;

  /// What the timer does: windows move on where it is time, and a new report is published if there
  /// is something new to tell.
  void Tick(Clock::time_point now);

 private:
  using Totals = std::array<std::uint64_t, kHotViews>;
  struct View {
    explicit View(std::size_t places) : sketch(places) {}
    HotSketch sketch;
    std::uint64_t largest = 0;  ///< Weight of what was chosen to stand for others; 0: none was.

    void Add(const SketchKey& key, std::uint64_t times, std::uint64_t weight) noexcept;
    [[nodiscard]] HotSketch::Known Look(std::uint64_t fingerprint) const noexcept;
    [[nodiscard]] std::uint64_t Bound(std::size_t place) const noexcept;
  };
  struct Window {
    explicit Window(std::size_t places) : views{View(places), View(places), View(places)} {}
    std::array<View, kHotViews> views;
    /// The sketch of costs is used from the first on that is not 1: until then it would be the same
    /// as that of requests.
    bool cost_apart = false;
    std::uint64_t dearest = 1;  ///< Of those that are not dear.

    void Clear() noexcept;
    [[nodiscard]] View& of(HotBy view) noexcept { return views[static_cast<std::size_t>(view)]; }
    /// Where a view's counts are.
    [[nodiscard]] const View& sketched(HotBy view) const noexcept;
  };

  struct Request {
    std::uint32_t slot;
    std::string_view identity;
    std::uint64_t cost;
    bool asked;    ///< It is due among the requests.
    bool refused;  ///< And among the denials.
  };

  void OnTimer(Clock::time_point now) override;
  void Add(const Request& request) noexcept;
  /// A cost that is not 1.
  void NoteCost(const Request& request) noexcept;
  /// Of the current window, by view; and since ever.
  [[nodiscard]] Totals TotalsNow() const noexcept;
  [[nodiscard]] Totals AllTotals() const noexcept;
  /// Requests in both windows.
  [[nodiscard]] std::uint64_t Requests() const noexcept {
    return requests_total_ - requests_at_begin_ + requests_before_;
  }
  /// The current window knows what one may stand for in it.
  void NoteSampling() noexcept;
  [[nodiscard]] HotList ListOf(HotBy by) const;
  void Rotate(Clock::time_point now) noexcept;
  [[nodiscard]] SketchKey KeyOf(const Request& request) const noexcept;

  // What every request touches, close together.
  alignas(64) HotPace requests_;  ///< And costs.
  HotPace denials_;
  std::uint64_t more_cost_ = 0;       ///< Than 1 for each, since ever.
  std::uint64_t requests_total_ = 0;  ///< Requests since the start.
  Totals begun_at_{};                 ///< What had come since ever when the current window began.
  std::array<std::unique_ptr<Window>, 2> windows_;  ///< The current one, and that before it.
  Totals totals_before_{};
  std::uint64_t requests_at_begin_ = 0;  ///< `requests_total_` when the window began.
  std::uint64_t requests_before_ = 0;    ///< Requests in the window before it.
  const std::size_t most_;
  alignas(64) std::array<unsigned char, 192> secret_;
  std::uint64_t slot_secret_;
  Clock::time_point began_;  ///< The current window.
  Clock::time_point since_;  ///< What is counted now; when that before began.
  bool quiet_ = true;        ///< The last report has nothing in it.
  mutable std::mutex mutex_;
  std::shared_ptr<const HotReport> published_;  ///< Guarded by mutex_.
};

}  // namespace tidegate
