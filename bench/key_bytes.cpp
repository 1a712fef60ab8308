// SPDX-License-Identifier: Apache-2.0
// Measures the memory of one tracked key: resident bytes of a full store, divided by the number of
// its keys.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "store/store.hpp"

namespace {

std::size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

}  // namespace

int main() {
  using namespace tidegate;
  using namespace std::chrono_literals;
  bool holds = true;
  std::printf("%-16s %12s %16s %14s\n", "algorithm", "keys", "resident bytes", "bytes per key");
  for (int a = 0; a < kAlgorithms; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    const bool list = algorithm == Algorithm::kSlidingLog || algorithm == Algorithm::kConcurrency;
    for (const int keys : {100'000, 1'000'000}) {
      // Return freed memory of the last store, which would hide the memory that this store takes.
      malloc_trim(0);
      const std::size_t before = ResidentBytes();
      const auto store = NewMemoryStore({.max_keys = static_cast<std::size_t>(keys)});
      const Quota quota = Quota::Make({.algorithm = algorithm, .limit = 10, .period = 24h}).value();
      char identity[32];
      for (int i = 0; i < keys; ++i) {
        std::snprintf(identity, sizeof(identity), "user-%010d", i);
        const Charge charge{.rule = "r", .identity = identity, .quota = &quota, .lease = identity};
        if (!store->Apply(charge)->allowed) return EXIT_FAILURE;
      }
      const std::size_t bytes = ResidentBytes() - before;
      const double each = static_cast<double>(bytes) / keys;
      std::printf("%-16s %12d %16zu %14.1f%s\n", std::string(Name(algorithm)).c_str(), keys, bytes,
                  each, list ? "  (one unit each)" : "");
      if (store->Stats().overflowed > 0) std::printf("  but some keys found no room\n");
      if (algorithm == Algorithm::kTokenBucket && keys == 1'000'000) holds = each <= 64;
    }
  }
  std::printf("\n%s  <= 64 bytes per tracked key at 1M keys\n", holds ? "holds " : "MISSED");
  return holds ? EXIT_SUCCESS : EXIT_FAILURE;
}
