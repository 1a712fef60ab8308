// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "net/timer.hpp"
#include "store/redis/client.hpp"
#include "tidegate/error.hpp"

namespace tidegate::redis {

/// What the nodes that share one Redis know of each other. Thread-safe.
struct Fleet {
  std::atomic<std::int64_t> nodes{1};  ///< Alive, as Redis reported last.
  /// Nodes that hash identities with another key: every limit is multiplied then.
  std::atomic<std::int64_t> key_mismatches{0};
  std::atomic<std::uint64_t> heartbeats{0};
};

/// Tells Redis every second that this node is alive, and learns how many are. Keeps the fleet's
/// HMAC key in Redis too: who finds none writes its own, so a flushed Redis gets it back.
class Heartbeat final : private net::Timer {
 public:
  static constexpr std::chrono::milliseconds kEvery{1000};
  static constexpr std::chrono::milliseconds kSoon{50};
  /// Who has not been heard of for so long is gone.
  static constexpr std::chrono::seconds kAlive{5};

  static constexpr std::int64_t kMostNodes = 10'000;  ///< As the configuration has it.

  struct Options {
    std::string node;    ///< No spaces.
    std::string key_id;  ///< Of the HMAC key in use; no spaces.
    std::string secret;  ///< That key, where the fleet agrees on it through Redis; else empty.
    /// The fleet has another key than this node. On the reactor's thread, as the next.
    std::function<void(const std::string& secret)> on_secret = [](const std::string&) {};
    /// It has the same.
    std::function<void()> on_agreed = [] {};
  };

  /// On the client's reactor, as everything here.
  Heartbeat(net::Reactor& reactor, Client& client, Fleet& fleet, Options options);

  /// At once, and every second from now on.
  void Start() { Beat(); }
  void UseKey(std::string key_id, std::string secret);
  /// Tells Redis that this node is leaving.
  void Leave();

 private:
  void OnTimer(net::Timer::Clock::time_point) override { Beat(); }
  void Beat();
  [[nodiscard]] std::string Command(bool leaving) const;
  void OnReply(const Reply& reply);
  /// Fewer than before is believed after kAlive: a Redis that has just been emptied or restarted
  /// knows only those that have reported since, and a share must not grow by that.
  void NoteNodes(std::int64_t live);

  Client& client_;
  Fleet& fleet_;
  Options options_;
  bool waiting_ = false;
  net::Timer::Clock::time_point fewer_since_ = net::Timer::Clock::now();
  net::Timer::Clock::time_point last_reply_ = net::Timer::Clock::now();
};

/// Waits for Redis on the calling thread, `patience` at most, and agrees with the fleet on its HMAC
/// key: `candidate` if there is none yet. The Error says why that did not work.
[[nodiscard]] Result<std::string> AgreeOnSecret(const Client::Options& redis,
                                                const std::string& candidate,
                                                std::chrono::milliseconds patience);

}  // namespace tidegate::redis
