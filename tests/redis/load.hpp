// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "redis/record.hpp"

namespace tidegate::redis_test {

/// The next request of a connection.
struct LoadRequest {
  std::string_view path = "/v1/decide";  ///< Must refer to static storage.
  std::string body;
  std::uint32_t key = 0;
  std::uint16_t cost = 1;
  Op op = Op::kDecide;
  std::chrono::microseconds wait{0};  ///< Delay before the request is sent.
};

/// A load generator with many keep-alive connections to one or more nodes, all in one thread. Each
/// connection sends a request, waits for the response, and sends the next one. A connection that
/// was closed is reopened every few milliseconds, so nodes may stop and start. Every request
/// produces one Record.
class Load {
 public:
  struct Options {
    std::vector<int> ports = {};  ///< Ports of the nodes' API listeners.
    int connections = 64;         ///< Number of connections to each node.
    double rate = 0;  ///< Requests per second in total, evenly spread; 0: as many as possible.
    std::size_t most = 5'000'000;  ///< Requests in total, after which the load stops.
  };
  /// Fills in the next request of a connection; `last` is the record of its previous request,
  /// nullptr at first. The load's thread makes all calls.
  using Next =
      std::function<void(std::uint32_t connection, const Record* last, LoadRequest& load_request)>;

  /// Starts the load.
  Load(const Options& options, Next next);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Stops the load and returns its records, once every request has its response but after five
  /// seconds at the latest.
  Records Stop();

  [[nodiscard]] std::int64_t answered() const noexcept { return answered_; }
  [[nodiscard]] std::int64_t answered(DecidedBy decided_by) const noexcept {
    return by_source_[static_cast<std::size_t>(decided_by)];
  }
  /// Returns the number of responses from any source but `decided_by`. It adds counters that only
  /// grow, so 0 means that there was no such response, even while responses arrive; the difference
  /// of two totals could be wrong.
  [[nodiscard]] std::int64_t answered_otherwise(DecidedBy decided_by) const noexcept;
  /// Returns the latest send time up to which every node had a request decided by the store itself
  /// (not by its cache).
  [[nodiscard]] std::int64_t last_store_us() const noexcept;
  /// Returns the same time for the requests of one key. REQUIRES: key < kWatchedKeys.
  static constexpr std::size_t kWatchedKeys = 64;
  [[nodiscard]] std::int64_t last_store_us(std::uint32_t key) const noexcept;
  /// Waits for `more` further responses. Fails after ten seconds and reports the counts.
  [[nodiscard]] testing::AssertionResult Progress(std::int64_t more);
  /// Number of requests whose connection ended before their response.
  [[nodiscard]] std::int64_t lost() const noexcept { return lost_; }
  /// Number of responses that no request had caused or that were followed by more bytes.
  [[nodiscard]] std::int64_t unexpected() const noexcept { return unexpected_; }

 private:
  struct Connection;
  class Loop;

  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> sent_{0};
  std::atomic<std::int64_t> answered_{0};
  std::atomic<std::int64_t> lost_{0};
  std::atomic<std::int64_t> unexpected_{0};
  std::size_t nodes_;
  std::atomic<std::int64_t> last_store_us_[16] = {};               ///< Indexed by node.
  std::atomic<std::int64_t> key_store_us_[16][kWatchedKeys] = {};  ///< Indexed by node and key.
  std::atomic<std::int64_t> by_source_[6] = {};
  Records records_;
  std::thread thread_;
};

/// Returns a generator that sends decide requests to `rule` for `keys` identities in turn, over all
/// connections.
[[nodiscard]] Load::Next DecideInTurn(std::string rule, std::uint32_t keys);
/// Returns a generator that acquires a lease, holds it for `hold`, releases it, and starts again.
[[nodiscard]] Load::Next LeaseInTurn(std::string rule, std::uint32_t keys,
                                     std::chrono::microseconds hold);
/// Returns the identity that DecideInTurn uses for `key`.
[[nodiscard]] std::string IdentityOf(std::uint32_t key);

}  // namespace tidegate::redis_test
