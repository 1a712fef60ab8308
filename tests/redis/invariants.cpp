// SPDX-License-Identifier: Apache-2.0
#include "redis/invariants.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <ostream>
#include <unordered_map>

#include "redis/interval_tree.hpp"

namespace tidegate::redis_test {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

/// Tolerance in microseconds: both clocks are truncated to whole microseconds.
constexpr std::int64_t kTicks = 2;

std::vector<Record> AdmittedOf(std::span<const Record> records) {
  std::vector<Record> admitted;
  for (const Record& record : records) {
    if (record.admitted()) admitted.push_back(record);
  }
  std::sort(admitted.begin(), admitted.end(),
            [](const Record& a, const Record& b) { return a.sent_us > b.sent_us; });
  return admitted;
}

std::vector<std::int64_t> ReceivedOf(std::span<const Record> records) {
  std::vector<std::int64_t> received;
  received.reserve(records.size());
  for (const Record& record : records) received.push_back(record.received_us());
  std::sort(received.begin(), received.end());
  return received;
}

std::size_t PlaceOf(const std::vector<std::int64_t>& sorted, std::int64_t value) {
  return static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), value) -
                                  sorted.begin());
}

/// Checks a bucket over one stretch of time. `admitted` is sorted by falling send time; `extra` is
/// the number of units that losses may have added.
AssertionResult BucketStretch(std::span<const Record> admitted, const Promise& promise,
                              double extra) {
  if (admitted.empty()) return AssertionSuccess();
  const double rate = promise.limit / static_cast<double>(promise.period_us);
  const std::vector<std::int64_t> received = ReceivedOf(admitted);
  const std::int64_t origin = admitted.back().sent_us;
  // For each receive time r, the tree holds the units that were sent since s and received by r,
  // minus the refill until r. The loop lowers s; the refill since s is the same for all r.
  std::vector<double> start;
  start.reserve(received.size());
  for (const std::int64_t r : received) start.push_back(-rate * static_cast<double>(r - origin));
  IntervalTree<double> level(start);
  for (const Record& record : admitted) {
    level.Add(PlaceOf(received, record.received_us()), static_cast<double>(record.cost));
    const auto [most, place] = level.MostFrom(PlaceOf(received, record.sent_us));
    const double since = rate * static_cast<double>(record.sent_us - origin - kTicks);
    if (most + since > promise.burst + extra + 1e-6) {
      const double t = static_cast<double>(received[place] - record.sent_us);
      return AssertionFailure() << "a bucket of " << promise.burst << " and " << promise.limit
                                << " per " << promise.period_us << " us (+ " << extra
                                << " for losses) admitted " << most + since + rate * t << " in "
                                << t << " us, from " << record.sent_us << " to " << received[place];
    }
  }
  return AssertionSuccess();
}

AssertionResult LogStretch(std::span<const Record> admitted, std::int64_t period_us, double limit) {
  const std::vector<std::int64_t> received = ReceivedOf(admitted);
  const std::vector<double> start(received.size(), 0.0);
  IntervalTree<double> count(start);
  for (const Record& record : admitted) {
    count.Add(PlaceOf(received, record.received_us()), static_cast<double>(record.cost));
    const std::size_t end = PlaceOf(received, record.sent_us + period_us - kTicks);
    if (end == 0) continue;
    const double inside = count.At(end - 1);
    if (inside > limit) {
      return AssertionFailure() << inside << " were admitted within the " << period_us
                                << " us since " << record.sent_us << ", of at most " << limit;
    }
  }
  return AssertionSuccess();
}

std::int64_t FloorDivide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

AssertionResult AlignedStretch(std::span<const Record> admitted, const Promise& promise,
                               std::int64_t epoch_us, double extra) {
  if (admitted.empty()) return AssertionSuccess();
  const auto window = [&](std::int64_t at) {
    return FloorDivide(at + epoch_us, promise.period_us);
  };
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const Record& record : admitted) {
    first = std::min(first, window(record.sent_us - kTicks));
    last = std::max(last, window(record.received_us() + kTicks));
  }
  const auto windows = static_cast<std::size_t>(last - first + 1);
  // begun[i] has, for each record sent in window i, the window in which it was received and its
  // cost.
  std::vector<std::vector<std::pair<std::size_t, double>>> begun(windows);
  for (const Record& record : admitted) {
    begun[static_cast<std::size_t>(window(record.sent_us - kTicks) - first)].emplace_back(
        static_cast<std::size_t>(window(record.received_us() + kTicks) - first), record.cost);
  }
  std::vector<double> ended(windows, 0.0);
  for (std::size_t i = windows; i-- > 0;) {
    for (const auto& [window_of_end, cost] : begun[i]) ended[window_of_end] += cost;
    double total = 0;
    for (std::size_t j = i; j < windows; ++j) {
      total += ended[j];
      if (total > promise.limit * static_cast<double>(j - i + 1) + extra) {
        return AssertionFailure() << total << " were admitted in " << j - i + 1 << " window(s) of "
                                  << promise.period_us << " us, of " << promise.limit << " each (+ "
                                  << extra << " for losses)";
      }
    }
  }
  return AssertionSuccess();
}

using Stretch = std::function<AssertionResult(std::span<const Record>, double losses)>;

/// Checks `holds` for every stretch between two losses without extra units, and for the whole time
/// with one burst per loss.
AssertionResult Between(std::span<const Record> records, std::span<const Loss> losses,
                        const Stretch& holds) {
  const std::vector<Record> admitted = AdmittedOf(records);
  if (auto whole = holds(admitted, static_cast<double>(losses.size())); !whole) return whole;
  if (losses.empty()) return AssertionSuccess();
  std::vector<Loss> sorted(losses.begin(), losses.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const Loss& a, const Loss& b) { return a.from_us < b.from_us; });
  for (std::size_t i = 0; i <= sorted.size(); ++i) {
    const std::int64_t from =
        i == 0 ? std::numeric_limits<std::int64_t>::min() : sorted[i - 1].to_us;
    const std::int64_t to =
        i == sorted.size() ? std::numeric_limits<std::int64_t>::max() : sorted[i].from_us;
    std::vector<Record> stretch;
    for (const Record& record : admitted) {
      if (record.sent_us >= from && record.received_us() <= to) stretch.push_back(record);
    }
    if (auto part = holds(stretch, 0); !part) return part << ", in a stretch without a loss";
  }
  return AssertionSuccess();
}

struct Held {
  std::int64_t from_us;
  std::int64_t to_us;
};

std::vector<Held> HeldOf(std::span<const Record> records, const Promise& promise) {
  std::vector<Record> sorted(records.begin(), records.end());
  std::sort(sorted.begin(), sorted.end(), [](const Record& a, const Record& b) {
    return a.connection != b.connection ? a.connection < b.connection : a.sent_us < b.sent_us;
  });
  std::vector<Held> held;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].op != Op::kAcquire || !sorted[i].admitted()) continue;
    std::int64_t end = sorted[i].sent_us + promise.period_us;
    const bool released = i + 1 < sorted.size() && sorted[i + 1].op == Op::kRelease &&
                          sorted[i + 1].connection == sorted[i].connection;
    if (released) end = std::min(end, sorted[i + 1].sent_us);
    if (end > sorted[i].received_us()) held.push_back({sorted[i].received_us(), end});
  }
  return held;
}

}  // namespace

AssertionResult BucketHolds(std::span<const Record> records, const Promise& promise,
                            std::span<const Loss> losses) {
  return Between(records, losses, [&](std::span<const Record> admitted, double lost) {
    return BucketStretch(admitted, promise, lost * promise.burst);
  });
}

AssertionResult LogHolds(std::span<const Record> records, const Promise& promise,
                         std::span<const Loss> losses) {
  return Between(records, losses, [&](std::span<const Record> admitted, double lost) {
    return LogStretch(admitted, promise.period_us, promise.limit * (1 + lost));
  });
}

AssertionResult FixedWindowHolds(std::span<const Record> records, const Promise& promise,
                                 std::int64_t epoch_us, std::span<const Loss> losses) {
  return Between(records, losses, [&](std::span<const Record> admitted, double lost) {
    return AlignedStretch(admitted, promise, epoch_us, lost * promise.limit);
  });
}

AssertionResult SlidingWindowHolds(std::span<const Record> records, const Promise& promise,
                                   std::int64_t epoch_us, std::span<const Loss> losses) {
  return Between(records, losses, [&](std::span<const Record> admitted, double lost) {
    auto aligned = AlignedStretch(admitted, promise, epoch_us, lost * promise.limit);
    if (!aligned) return aligned;
    return LogStretch(admitted, promise.period_us, 2 * promise.limit - 1 + lost * promise.limit);
  });
}

std::int64_t MostLeases(std::span<const Record> records, const Promise& promise) {
  std::vector<std::pair<std::int64_t, int>> events;
  for (const Held& held : HeldOf(records, promise)) {
    events.emplace_back(held.from_us, 1);
    // Sorts before a grant at the same time: the end of a lease is excluded.
    events.emplace_back(held.to_us, -1);
  }
  std::sort(events.begin(), events.end());
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const auto& [at, change] : events) most = std::max(most, now += change);
  return most;
}

AssertionResult LeasesHold(std::span<const Record> records, const Promise& promise,
                           std::span<const Loss> losses) {
  const std::int64_t most = MostLeases(records, promise);
  const double allowed = promise.limit * static_cast<double>(1 + losses.size());
  if (static_cast<double>(most) <= allowed) return AssertionSuccess();
  return AssertionFailure() << most << " leases were held at once, of at most " << allowed;
}

AssertionResult EachKey(const Records& records, const Check& check) {
  std::vector<Record> sorted = records;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Record& a, const Record& b) { return a.key < b.key; });
  for (std::size_t begin = 0; begin < sorted.size();) {
    std::size_t end = begin;
    while (end < sorted.size() && sorted[end].key == sorted[begin].key) ++end;
    if (auto held = check(std::span(sorted).subspan(begin, end - begin)); !held) {
      return held << " (key " << sorted[begin].key << ")";
    }
    begin = end;
  }
  return AssertionSuccess();
}

std::int64_t EpochMicros() {
  using std::chrono::duration_cast;
  using std::chrono::microseconds;
  // Takes the narrowest of 100 pairs of readings, because the thread may be interrupted between two
  // readings.
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  std::int64_t epoch = 0;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t before = SteadyMicros();
    const auto system = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t after = SteadyMicros();
    if (after - before >= best) continue;
    best = after - before;
    epoch = duration_cast<microseconds>(system).count() - before;
  }
  return epoch;
}

std::int64_t Admitted(std::span<const Record> records) {
  return std::count_if(records.begin(), records.end(),
                       [](const Record& record) { return record.admitted(); });
}

Latencies LatenciesOf(std::span<const Record> records) {
  std::vector<std::uint32_t> took;
  took.reserve(records.size());
  for (const Record& record : records) {
    if (record.status != 0) took.push_back(record.took_us);
  }
  if (took.empty()) return {};
  std::sort(took.begin(), took.end());
  const auto at = [&](double share) {
    const double place = std::ceil(share * static_cast<double>(took.size())) - 1;
    return took[static_cast<std::size_t>(std::max(0.0, place))] / 1000.0;
  };
  return {at(0.5), at(0.99), at(0.999), at(1), took.size()};
}

std::ostream& operator<<(std::ostream& out, const Latencies& latencies) {
  return out << latencies.count << " answers, p50 " << latencies.p50_ms << " ms, p99 "
             << latencies.p99_ms << " ms, p99.9 " << latencies.p999_ms << " ms, most "
             << latencies.most_ms << " ms";
}

}  // namespace tidegate::redis_test
