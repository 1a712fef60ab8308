// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tidegate {

/// Writes one line per event to standard error, for people or for machines. Values are escaped, so
/// that no input can break a line. Thread-safe.
class Log {
 public:
  enum class Format : std::uint8_t { kText, kJson };
  enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError };
  struct Field {
    std::string_view name;
    std::string value;
  };
  using Fields = std::initializer_list<Field>;

  static void Configure(Format format, Level least) noexcept;

  static void Info(std::string_view what, Fields fields = {}) { Write(Level::kInfo, what, fields); }
  static void Warning(std::string_view what, Fields fields = {}) {
    Write(Level::kWarning, what, fields);
  }
  static void Error(std::string_view what, Fields fields = {}) {
    Write(Level::kError, what, fields);
  }

  /// Returns the log line without a line break. `time` is in RFC 3339 format.
  [[nodiscard]] static std::string Line(Format format, Level level, std::string_view time,
                                        std::string_view what, Fields fields);

 private:
  static void Write(Level level, std::string_view what, Fields fields);
};

/// Permits one log line per interval for events that clients can cause. Thread-safe.
class LogInterval {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LogInterval(Clock::duration interval) noexcept : interval_(interval) {}

  /// Counts an event. If a line may be written now, returns the number of events since the last
  /// line, including this one; otherwise 0.
  [[nodiscard]] std::uint64_t Count(Clock::time_point now) noexcept {
    const std::uint64_t count = unlogged_.fetch_add(1, std::memory_order_relaxed) + 1;
    Clock::rep next = next_.load(std::memory_order_relaxed);
    const Clock::rep then = (now + interval_).time_since_epoch().count();
    // If several threads get here at once, only one of them logs.
    if (now.time_since_epoch().count() < next ||
        !next_.compare_exchange_strong(next, then, std::memory_order_relaxed)) {
      return 0;
    }
    unlogged_.fetch_sub(count, std::memory_order_relaxed);
    return count;
  }

 private:
  const Clock::duration interval_;
  std::atomic<std::uint64_t> unlogged_{0};
  std::atomic<Clock::rep> next_{Clock::time_point::min().time_since_epoch().count()};
};

}  // namespace tidegate
