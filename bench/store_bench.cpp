// SPDX-License-Identifier: Apache-2.0
// Compares a keyed decision of the memory store with a plain hash-table lookup of the same
// identities, in one run. The result is the ratio.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocations.hpp"
#include "keys.hpp"
#include "store/store.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tidegate {
namespace {

using namespace std::chrono_literals;

const Keys& KeysOf(std::int64_t distinct) {
  static const Keys few(100'000, 8);
  if (distinct == 100'000) return few;
  static const Keys many(10'000'000, 1);
  return many;
}

/// Returns a quota that no key ever reaches: every decision is allowed, refilled and written.
const Quota& QuotaOf(Algorithm algorithm) {
  static const auto quotas = [] {
    std::array<std::unique_ptr<Quota>, kAlgorithms> all;
    for (int i = 0; i < kAlgorithms; ++i) {
      const auto a = static_cast<Algorithm>(i);
      QuotaSpec spec{.algorithm = a, .limit = 1'000'000, .period = 1s};
      if (a == Algorithm::kTokenBucket || a == Algorithm::kGcra) {
        spec = {.algorithm = a, .limit = 1000, .period = 1s, .burst = 1'000'000};
      }
      if (a == Algorithm::kSlidingLog) spec = {.algorithm = a, .limit = 1000, .period = 10ms};
      if (a == Algorithm::kConcurrency) spec = {.algorithm = a, .limit = 10, .period = 1s};
      all[static_cast<std::size_t>(i)] = std::make_unique<Quota>(Quota::Make(spec).value());
    }
    return all;
  }();
  return *quotas[static_cast<std::size_t>(algorithm)];
}

/// Returns the store of a benchmark, one for the whole run: threads and repetitions share it.
Store& StoreOf(Algorithm algorithm, std::int64_t distinct) {
  static std::mutex mutex;
  static std::map<std::pair<Algorithm, std::int64_t>, std::unique_ptr<Store>> stores;
  const std::lock_guard lock(mutex);
  auto& store = stores[{algorithm, distinct}];
  if (store == nullptr) {
    store = NewMemoryStore({.max_keys = static_cast<std::size_t>(distinct)});
    const Keys& keys = KeysOf(distinct);
    for (std::size_t i = 0; i < static_cast<std::size_t>(distinct); ++i) {
      benchmark::DoNotOptimize(store->Apply(Charge{"per-key", keys[i], &QuotaOf(algorithm)}));
    }
  }
  return *store;
}

/// Whether the next key is known before the last result is. A processor overlaps the cache misses
/// of independent lookups. A server that answers one request after the other cannot have that
/// overlap, nor can any code that takes a lock.
enum class Order { kOneByOne, kOverlapped };

void Decide(benchmark::State& state, Algorithm algorithm, std::int64_t distinct) {
  const Keys& keys = KeysOf(distinct);
  const Quota& quota = QuotaOf(algorithm);
  Store& store = StoreOf(algorithm, distinct);
  std::size_t at = keys.size() / 2 * static_cast<std::size_t>(state.thread_index());
  const std::uint64_t before = AllocationsOfThisThread();
  for (auto _ : state) {
    const auto decision = store.Apply(Charge{"per-key", keys[at], &quota});
    // It is never 2, but the compiler and the processor cannot know that.
    at += decision->remaining < 0 ? 2 : 1;
    if (at >= keys.size()) at = 0;
  }
  state.counters["allocations"] = static_cast<double>(AllocationsOfThisThread() - before);
  state.SetItemsProcessed(state.iterations());
}

struct Hash {
  using is_transparent = void;
  using is_avalanching = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return XXH3_64bits(text.data(), text.size());
  }
};

/// The part of a decision that cannot be avoided: finds the state and touches it.
template <class Map>
void LookUp(benchmark::State& state, std::int64_t distinct, Order order) {
  const Keys& keys = KeysOf(distinct);
  static std::map<std::int64_t, Map> maps;
  Map& map = maps[distinct];
  if (map.empty()) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(distinct); ++i) {
      map[std::string(keys[i])] = {};
    }
  }
  std::size_t at = keys.size() / 2 * static_cast<std::size_t>(state.thread_index());
  for (auto _ : state) {
    std::int64_t seen = ++map.find(keys[at])->second[0];
    if (order == Order::kOverlapped) {
      benchmark::DoNotOptimize(seen);
      seen = 0;
    }
    at += seen < 0 ? 2 : 1;
    if (at >= keys.size()) at = 0;
  }
  state.SetItemsProcessed(state.iterations());
}

using State = std::array<std::int64_t, 3>;
using FlatMap = boost::unordered_flat_map<std::string, State, Hash, std::equal_to<>>;
using NodeMap = std::unordered_map<std::string, State, Hash, std::equal_to<>>;

/// Keeps the least CPU time of each benchmark, and prints the usual report. The least CPU time of
/// all repetitions is used because other load on the machine can only increase it.
class Least final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.aggregate_name != "min") continue;
      nanoseconds_[run.run_name.function_name + (run.threads == 2 ? "/two_threads" : "")] =
          run.GetAdjustedCPUTime();
      if (const auto it = run.counters.find("allocations"); it != run.counters.end()) {
        if (run.run_name.function_name.find("sliding_log") == std::string::npos) {
          allocations_ += it->second.value;
        }
      }
    }
    ConsoleReporter::ReportRuns(runs);
  }

  /// Prints the bars of the design, each with the measured value. Returns true if all are met.
  [[nodiscard]] bool PrintBars(std::ostream& out) const {
    for (const char* name : {kOne, kTwo, kFlat, kNode}) {
      // The user's filter has left this benchmark out.
      if (!nanoseconds_.contains(name)) return true;
    }
    const double one = nanoseconds_.at(kOne);
    const double two = nanoseconds_.at(kTwo);
    const double floor = std::min(nanoseconds_.at(kFlat), nanoseconds_.at(kNode));
    bool all = true;
    const auto bar = [&](const char* what, double got, const char* unit, bool holds) {
      out << (holds ? "holds   " : "MISSED  ") << what << ": " << got << unit << "\n";
      all = all && holds;
    };
    out << "\nBars, by the least CPU time of all repetitions:\n";
    bar("a keyed token-bucket decision, 100k keys, one thread, <= 100 ns", one, " ns", one <= 100);
    bar("the same <= 2x the quickest bare look-up, one by one", one / floor, "x", one <= 2 * floor);
    bar("two threads >= 1.8x one", 2 * one / two, "x", 2 * one / two >= 1.8);
    bar("allocations while deciding (without sliding_log), none", allocations_, "",
        allocations_ == 0);
    return all;
  }

 private:
  static constexpr auto kOne = "decide/token_bucket/100k";
  static constexpr auto kTwo = "decide/token_bucket/100k/two_threads";
  static constexpr auto kFlat = "lookup/flat_map/100k/one_by_one";
  static constexpr auto kNode = "lookup/unordered_map/100k/one_by_one";

  std::map<std::string, double> nanoseconds_;
  double allocations_ = 0;
};

void Register() {
  struct Size {
    const char* name;
    std::int64_t keys;
  };
  const auto add = [](const std::string& name, auto function) {
    return benchmark::RegisterBenchmark(name.c_str(), function)
        ->UseRealTime()
        ->ComputeStatistics("min", [](const std::vector<double>& all) {
          return *std::min_element(all.begin(), all.end());
        });
  };
  for (const auto& [name, keys] : {Size{"100k", 100'000}, Size{"10M", 10'000'000}}) {
    const std::string at = std::string("/") + name;
    for (const auto& [how, order] : {std::pair{"/one_by_one", Order::kOneByOne},
                                     std::pair{"/overlapped", Order::kOverlapped}}) {
      add("lookup/flat_map" + at + how,
          [keys, order](benchmark::State& s) { LookUp<FlatMap>(s, keys, order); });
      add("lookup/unordered_map" + at + how,
          [keys, order](benchmark::State& s) { LookUp<NodeMap>(s, keys, order); });
    }
    for (const Algorithm a : {Algorithm::kTokenBucket, Algorithm::kGcra, Algorithm::kSlidingWindow,
                              Algorithm::kFixedWindow, Algorithm::kSlidingLog}) {
      if (keys > 1'000'000 && a != Algorithm::kTokenBucket) continue;
      add("decide/" + std::string(Name(a)) + at, [a, keys](benchmark::State& s) {
        Decide(s, a, keys);
      })->ThreadRange(1, 2);
    }
  }
}

}  // namespace
}  // namespace tidegate

int main(int argc, char** argv) {
  // Repetitions in a random order, so that noise affects all benchmarks equally. Options of the
  // caller override these.
  std::vector<std::string> words = {
      argv[0], "--benchmark_repetitions=25", "--benchmark_min_time=0.05",
      "--benchmark_enable_random_interleaving=true", "--benchmark_report_aggregates_only=true"};
  words.insert(words.end(), argv + 1, argv + argc);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;
  tidegate::Register();
  tidegate::Least reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return reporter.PrintBars(std::cout) ? 0 : 1;
}
