// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

namespace tidegate::oracle {

/// CL.THROTTLE as the module redis-cell (0.4) computes it, step by step. Shares no code with src/.
/// Stores one time for each key, the theoretical arrival time (tat), whatever the parameters of the
/// calls are. Does not model that keys in Redis expire after whole milliseconds, up to one
/// millisecond too early.
class RedisCell {
 public:
  using Answer = std::array<std::int64_t, 5>;
  enum class Interval : std::uint8_t {
    kNanoseconds,  ///< Like redis-cell: one unit takes whole nanoseconds, rounded down.
    kExact,        ///< One unit takes period / count exactly, and times are rounded up to
                   ///< microseconds before they are converted to seconds. REQUIRES: the count of a
                   ///< key does not change.
  };
  explicit RedisCell(Interval interval = Interval::kNanoseconds) : interval_(interval) {}

  /// REQUIRES: count > 0, period > 0, and no time exceeds 64 bits of nanoseconds.
  Answer Throttle(const std::string& key, std::int64_t max_burst, std::int64_t count,
                  std::int64_t period, std::int64_t quantity, std::int64_t now_us) {
    const bool exact = interval_ == Interval::kExact;
    // All times are in 1 / scale nanoseconds.
    const Wide scale = exact ? count : 1;
    const Wide period_ns = Wide{period} * 1'000'000'000;
    const Wide emission = exact ? period_ns
                                : Wide{static_cast<std::int64_t>(static_cast<double>(period_ns) /
                                                                 static_cast<double>(count))};
    const Wide tolerance = emission * (max_burst + 1);
    const Wide increment = emission * quantity;
    const Wide now = Wide{now_us} * 1000 * scale;
    const auto found = tats_.find(key);
    const Wide tat = found == tats_.end() ? now : found->second;
    const Wide next_tat = (now > tat ? now : tat) + increment;
    const Wide diff = now - (next_tat - tolerance);

    Answer answer{0, max_burst + 1, 0, -1, 0};
    Wide ttl = next_tat - now;
    if (diff < 0) {
      answer[0] = 1;
      if (increment <= tolerance) answer[3] = Seconds(-diff, scale);
      ttl = tat - now;
      if (ttl < 0) ttl = 0;  // A key whose TTL is below 0 has expired in Redis.
    } else {
      tats_[key] = next_tat;
    }
    const Wide room = tolerance - ttl;
    if (room > -emission) {
      answer[2] =
          exact ? static_cast<std::int64_t>(room / emission) : DividedAsMicros(room, emission);
    }
    answer[4] = Seconds(ttl, scale);
    last_wait_us_ = diff < 0 && increment <= tolerance ? UpToMicros(-diff, scale) : 0;
    last_reset_us_ = UpToMicros(ttl, scale);
    return answer;
  }

  /// After the last call: microseconds until the same call passes, and until the key is full again.
  [[nodiscard]] std::int64_t last_wait_us() const { return last_wait_us_; }
  [[nodiscard]] std::int64_t last_reset_us() const { return last_reset_us_; }

 private:
  __extension__ typedef __int128 Wide;

  /// redis-cell divides whole microseconds. If a unit takes less than one microsecond, the result
  /// is infinite.
  static std::int64_t DividedAsMicros(Wide room, Wide emission) {
    const Wide unit = emission / 1000;
    if (unit == 0) return room / 1000 == 0 ? 0 : std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(room / 1000 / unit);
  }
  static std::int64_t UpToMicros(Wide time, Wide scale) {
    return static_cast<std::int64_t>((time + 1000 * scale - 1) / (1000 * scale));
  }
  /// Returns whole seconds, plus one if there are milliseconds besides.
  [[nodiscard]] std::int64_t Seconds(Wide time, Wide scale) const {
    const Wide millis =
        interval_ == Interval::kExact ? UpToMicros(time, scale) / 1000 : time / 1'000'000;
    return static_cast<std::int64_t>(millis / 1000 + (millis % 1000 > 0 ? 1 : 0));
  }

  Interval interval_;
  std::map<std::string, Wide> tats_;
  std::int64_t last_wait_us_ = 0;
  std::int64_t last_reset_us_ = 0;
};

}  // namespace tidegate::oracle
