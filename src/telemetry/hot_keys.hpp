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
#include "telemetry/hot_report.hpp"
#include "telemetry/hot_sketch.hpp"

namespace tidegate {

/// Which keys ask most, are denied most and cost most at one reactor, over the last 10 to 20 s.
///
/// Counted in two windows, of which the older is forgotten every 10 s; reported together. Memory is
/// bounded by the number of keys to be reported, whoever comes: some 0.2 MB per 1,024 places and
/// view, of which there are four per key to report, 1,024 at least. Fingerprints are keyed by a
/// random secret, so nobody can aim at the places of another.
///
/// Count is for the reactor's thread, Published for any.
class HotKeys final : private net::Timer {
 public:
  using Clock = net::Timer::Clock;
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr std::chrono::milliseconds kEvery{500};  ///< A new report.

  enum class Outcome : std::uint8_t { kPassed, kDenied };

  /// `most`: keys in each list of a report, at least 1.
  HotKeys(net::Timers& timers, std::size_t most, Clock::time_point now = Clock::now());

  /// REQUIRES: cost >= 1.
  void Count(std::uint32_t slot, std::string_view identity, std::int64_t cost,
             Outcome outcome) noexcept;

  /// The last report; never nullptr. It is up to half a second old, and grows no older than that:
  /// when nobody comes, its counts become 0 with time.
  [[nodiscard]] std::shared_ptr<const HotReport> Published() const;

  /// What the timer does: windows move on where it is time, and a new report is published if there
  /// is something new to tell.
  void Tick(Clock::time_point now);

 private:
  struct Window {
    explicit Window(std::size_t places) : requests(places), denials(places), cost(places) {}
    HotSketch requests;
    HotSketch denials;
    /// Used from the first cost on that is not 1: until then it would be the same as `requests`.
    HotSketch cost;
    bool cost_apart = false;

    void Clear() noexcept;
    [[nodiscard]] const HotSketch& of(HotBy view) const noexcept;
  };

  void OnTimer(Clock::time_point now) override;
  void CountCost(Window& window, const SketchKey& key, std::uint64_t cost) noexcept;
  void Rotate(Clock::time_point now) noexcept;
  [[nodiscard]] std::uint64_t Fingerprint(std::uint32_t slot,
                                          std::string_view identity) const noexcept;

  const std::size_t most_;
  alignas(64) std::array<unsigned char, 192> secret_;
  std::uint64_t slot_secret_;
  std::array<std::unique_ptr<Window>, 2> windows_;  ///< The current one, and that before it.
  Clock::time_point began_;                         ///< The current window.
  Clock::time_point since_;  ///< What is counted now; when that before began.
  bool quiet_ = true;        ///< The last report has nothing in it.
  mutable std::mutex mutex_;
  std::shared_ptr<const HotReport> published_;  ///< Guarded by mutex_.
};

}  // namespace tidegate
