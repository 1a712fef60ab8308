// SPDX-License-Identifier: Apache-2.0
// Compares the cost of decisions for the nodes of a Redis Cluster with the cost for one Redis, in
// one run, and measures the memory of keys in Redis. The servers run on one core, and the load
// generator on another core sends requests to them in turns. Usage: cluster_bench TIDEGATE
// [--quick] [ROW...]
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "awake.hpp"
#include "bench_options.hpp"
#include "child.hpp"
#include "redis/redis_cluster.hpp"
#include "redis_drive.hpp"
#include "store/redis/redis_url.hpp"

namespace tidegate::bench {
namespace {

using std::chrono::seconds;

constexpr int kRedisCore = 0;
constexpr int kLoadCore = 1;
constexpr std::uint32_t kKeys = 100'000;

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

redis::RedisUrl Url(const std::string& text) { return redis::ParseRedisUrl(text).value(); }

void PinTo(pid_t pid, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  if (sched_setaffinity(pid, sizeof set, &set) != 0) throw std::runtime_error("no such core");
}

/// One or more Redis servers, and a store that sends requests to them.
class Side {
 public:
  explicit Side(redis_test::RedisServer& one)
      : servers_{&one}, host_(Url(one.url()), kLoadCore, 1) {}
  explicit Side(redis_test::RedisCluster& cluster)
      : servers_(ServersOf(cluster)), host_(Url(cluster.url()), kLoadCore, cluster.size()) {}

  /// Result of one round: CPU time per decision in microseconds, of all servers together and of the
  /// busiest one.
  struct Cost {
    double sum = 0;
    double busiest = 0;
  };
  Cost Ask(const ClosedLoop::Load& load, const std::vector<std::string>& identities) {
    if (loop_ == nullptr) loop_ = std::make_unique<ClosedLoop>(host_, identities);
    std::vector<double> before;
    for (const auto* server : servers_) before.push_back(server->CpuSeconds());
    const auto outcome = loop_->Run(load);
    if (outcome.inexact > 0) throw std::runtime_error("Redis did not answer in time");
    Cost cost;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      const double used =
          (servers_[i]->CpuSeconds() - before[i]) * 1e6 / static_cast<double>(outcome.decisions);
      cost.sum += used;
      cost.busiest = std::max(cost.busiest, used);
    }
    return cost;
  }
  void Forget() {
    for (auto* server : servers_) (void)server->Text({"FLUSHALL"});
  }
  [[nodiscard]] const redis::ClientStats& stats() { return host_.redis_store().redis_stats(); }

 private:
  static std::vector<redis_test::RedisServer*> ServersOf(redis_test::RedisCluster& cluster) {
    std::vector<redis_test::RedisServer*> servers;
    for (std::size_t i = 0; i < cluster.size(); ++i) {
      servers.push_back(&cluster[i]);
      PinTo(cluster[i].pid(), kRedisCore);
    }
    return servers;
  }

  std::vector<redis_test::RedisServer*> servers_;
  RedisStoreHost host_;
  std::unique_ptr<ClosedLoop> loop_;
};

class ClusterBench {
 public:
  explicit ClusterBench(const BenchOptions& options) : options_(options) {}

  void Run() {
    const AwakeCores awake{kRedisCore, kLoadCore};
    Compare("uniform", Draws::Uniform(kKeys));
    Compare("zipf", Draws::Zipf(kKeys, 1.1));
    Compare("hot", Draws::Only(0));
    Memory();
  }

 private:
  static Quota Endless() {
    return Quota::Make({.limit = 60'000'000, .period = seconds{60}}).value();
  }

  void Compare(const char* name, const Draws& draws) {
    if (!options_.Wants(name)) return;
    if (!printed_) {
      std::printf(
          "CPU time per decision of all servers, us, medians of rounds in turn; entries: distinct "
          "requests in a script call.\n%-10s %12s %12s %12s %14s %16s %10s\n",
          "", "one Redis", "1 master", "2 masters", "busiest of 2", "2 carry so many", "entries");
      printed_ = true;
    }
    Begin();
    const Quota quota = Endless();
    std::vector<Side*> sides = {&*one_, &*single_, &*pair_};
    std::vector<Draws> each(sides.size(), draws);
    std::vector<std::vector<double>> sums(sides.size());
    std::vector<double> busiest;
    for (Side* const side : sides) {
      side->Forget();
      Draws all = Draws::Each(kKeys);
      (void)side->Ask({&all, &quota, 256, 60, kKeys}, identities_);
    }
    std::vector<std::uint64_t> batches;
    std::vector<std::uint64_t> entries;
    for (Side* const side : sides) {
      batches.push_back(side->stats().batches.get());
      entries.push_back(side->stats().entries.get());
    }
    for (int round = 0; round < (options_.quick ? 5 : 15); ++round) {
      for (std::size_t i = 0; i < sides.size(); ++i) {
        const auto cost =
            sides[i]->Ask({&each[i], &quota, 256, options_.quick ? 0.1 : 0.2}, identities_);
        sums[i].push_back(cost.sum);
        if (i == 2) busiest.push_back(cost.busiest);
      }
    }
    const double single = MedianOf(sums[1]);
    const double half = MedianOf(busiest);
    std::printf("%-10s %12.3f %12.3f %12.3f %14.3f %15.2fx ", name, MedianOf(sums[0]), single,
                MedianOf(sums[2]), half, single / half);
    for (std::size_t i = 0; i < sides.size(); ++i) {
      std::printf(" %.1f", static_cast<double>(sides[i]->stats().entries.get() - entries[i]) /
                               static_cast<double>(sides[i]->stats().batches.get() - batches[i]));
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  /// Prints the memory per key that Redis reports, for keys with a TTL and an identity of about 20
  /// bytes.
  void Memory() {
    if (!options_.Wants("memory")) return;
    std::printf("bytes of Redis's memory per key\n");
    Begin();
    struct Row {
      const char* name;
      Algorithm algorithm;
      int times;
    };
    for (const Row& row :
         {Row{"token_bucket", Algorithm::kTokenBucket, 1}, Row{"gcra", Algorithm::kGcra, 1},
          Row{"fixed_window", Algorithm::kFixedWindow, 1},
          Row{"sliding_window", Algorithm::kSlidingWindow, 1},
          Row{"sliding_log, 1 of 100", Algorithm::kSlidingLog, 1},
          Row{"sliding_log, 10 of 100", Algorithm::kSlidingLog, 10},
          Row{"sliding_log, 100 of 100", Algorithm::kSlidingLog, 100}}) {
      const Quota quota =
          Quota::Make({.algorithm = row.algorithm, .limit = 100, .period = seconds{86'400}})
              .value();
      one_->Forget();
      const std::uint32_t keys = row.times == 100 ? kKeys / 10 : kKeys;
      const double before = Used();
      for (int i = 0; i < row.times; ++i) {
        Draws all = Draws::Each(keys);
        (void)one_->Ask({&all, &quota, 256, 600, keys}, identities_);
      }
      std::printf("%-24s %8.0f\n", row.name, (Used() - before) / keys);
      std::fflush(stdout);
    }
  }
  double Used() {
    const std::string info = server_->Text({"INFO", "memory"});
    const std::string before = "used_memory:";
    return std::stod(info.substr(info.find(before) + before.size()));
  }

  void Begin() {
    if (server_) return;
    server_.emplace(redis_test::RedisServer::Options{.core = kRedisCore});
    cluster_of_one_.emplace(redis_test::RedisCluster::Options{.masters = 1, .replicas = false});
    cluster_of_two_.emplace(redis_test::RedisCluster::Options{.masters = 2, .replicas = false});
    one_.emplace(*server_);
    single_.emplace(*cluster_of_one_);
    pair_.emplace(*cluster_of_two_);
  }

  const BenchOptions options_;
  const std::vector<std::string> identities_ = Identities(kKeys);
  bool printed_ = false;
  std::optional<redis_test::RedisServer> server_;
  std::optional<redis_test::RedisCluster> cluster_of_one_;
  std::optional<redis_test::RedisCluster> cluster_of_two_;
  std::optional<Side> one_;
  std::optional<Side> single_;
  std::optional<Side> pair_;
};

}  // namespace
}  // namespace tidegate::bench

int main(int argc, char** argv) {
  using namespace tidegate::bench;
  try {
    const BenchOptions options = BenchOptions::Parse("cluster_bench", argc, argv);
    PinTo(kLoadCore);
    ClusterBench(options).Run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cluster_bench: %s\n", error.what());
    return 1;
  }
}
