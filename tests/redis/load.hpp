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

/// What a connection asks next.
struct Question {
  std::string_view path = "/v1/decide";  ///< Of static storage.
  std::string body;
  std::uint32_t key = 0;
  std::uint16_t cost = 1;
  Op op = Op::kDecide;
  std::chrono::microseconds wait{0};  ///< Before it is sent.
};

/// Many keep-alive connections to some nodes, each of which asks, waits for the answer and asks
/// again, all in one thread. A connection that ends is made again every few milliseconds, so nodes
/// may come and go. Every question leaves one Record.
class Load {
 public:
  struct Options {
    std::vector<int> ports = {};   ///< Of the nodes' APIs.
    int connections = 64;          ///< To each node.
    double rate = 0;               ///< Questions a second in all, evenly spread; 0: all it can.
    std::size_t most = 5'000'000;  ///< Questions in all; then it ends by itself.
  };
  /// Fills in the question of a connection; `last` is the answer before, nullptr at first. Called
  /// by the load's thread only.
  using Next =
      std::function<void(std::uint32_t connection, const Record* last, Question& question)>;

  /// Starts at once.
  Load(const Options& options, Next next);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Ends when every question that was sent has its answer, or after five seconds.
  Records Stop();

  [[nodiscard]] std::int64_t answered() const noexcept { return answered_; }
  [[nodiscard]] std::int64_t answered(DecidedBy decided_by) const noexcept {
    return by_source_[static_cast<std::size_t>(decided_by)];
  }
  /// Answers from any source but `decided_by`. Only counters that grow are read, so 0 means that
  /// there was none, even while answers arrive; a difference of two totals would not.
  [[nodiscard]] std::int64_t answered_otherwise(DecidedBy decided_by) const noexcept;
  /// When the last question was sent that the store of every node answered itself.
  [[nodiscard]] std::int64_t last_store_us() const noexcept;
  /// The same of one key below kWatchedKeys.
  static constexpr std::size_t kWatchedKeys = 64;
  [[nodiscard]] std::int64_t last_store_us(std::uint32_t key) const noexcept;
  /// Waits until so many more were answered; fails, and says what was, after ten seconds.
  [[nodiscard]] testing::AssertionResult Progress(std::int64_t more);
  /// Questions without an answer, since their connection ended.
  [[nodiscard]] std::int64_t lost() const noexcept { return lost_; }
  /// Answers without a request, and those that were no HTTP.
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
  std::atomic<std::int64_t> last_store_us_[16] = {};               ///< By node.
  std::atomic<std::int64_t> key_store_us_[16][kWatchedKeys] = {};  ///< By node and key.
  std::atomic<std::int64_t> by_source_[6] = {};
  Records records_;
  std::thread thread_;
};

/// Asks `rule` for `keys` identities in turn; those of different connections are spread.
[[nodiscard]] Load::Next DecideInTurn(std::string rule, std::uint32_t keys);
/// Acquires a lease, holds it for so long, releases it, and so on.
[[nodiscard]] Load::Next LeaseInTurn(std::string rule, std::uint32_t keys,
                                     std::chrono::microseconds hold);
/// How identities of DecideInTurn are called.
[[nodiscard]] std::string IdentityOf(std::uint32_t key);

}  // namespace tidegate::redis_test
