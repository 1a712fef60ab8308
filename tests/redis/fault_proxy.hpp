// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace tidegate::redis_test {

/// What a FaultProxy does to the bytes that pass. All kinds apply to connections that are open
/// already and to new ones.
struct Fault {
  enum class Kind : std::uint8_t {
    kPass,
    kDelayReplies,  ///< Each piece of a reply comes `delay` later.
    kDropReplies,  ///< Redis executes, but the reply is lost: from the first piece on that was hit.
    kCutReplies,   ///< `bytes` of a piece are forwarded, then the connection is reset.
    kGarble,       ///< Flips, junk and wrong lengths inside of a piece.
    kStall,        ///< Nothing is read, in neither direction.
  };
  Kind kind = Kind::kPass;
  std::chrono::milliseconds delay{0};
  std::size_t bytes = 0;
  double share = 1.0;  ///< Of the pieces of replies: how many are hit.
};

/// A proxy on 127.0.0.1 that misbehaves on demand, in a thread of its own. It stands between
/// Tidegate and Redis: "reply" is what comes from the server. Thread-safe.
///
/// A connection of which bytes were dropped or changed is reset when the fault changes: no network
/// takes bytes out of the middle of a TCP stream and then goes on.
class FaultProxy {
 public:
  explicit FaultProxy(int server_port, std::uint32_t seed = 1);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

  /// In force when this returns.
  void Set(const Fault& fault);
  void Pass() { Set(Fault{}); }
  /// Resets every connection that is open now.
  void CutAll();
  /// New connections are refused by the system, as those to a server that is not there.
  void Refuse();
  void Accept();

  [[nodiscard]] int accepted() const noexcept { return accepted_; }
  [[nodiscard]] int open() const noexcept { return open_; }
  /// Pieces of replies that were dropped, cut or garbled.
  [[nodiscard]] int hits() const noexcept { return hits_; }
  /// When connections were accepted, in microseconds of the steady clock.
  [[nodiscard]] std::vector<std::int64_t> AcceptTimes() const;

 private:
  struct Piece {
    std::int64_t due_us;
    std::string bytes;
  };
  /// One direction of a connection.
  struct Side {
    int fd = -1;
    std::deque<Piece> out;  ///< To be written to `fd`.
    bool ended = false;     ///< Nothing more comes from `fd`.
    std::uint32_t watched = 0;
  };
  struct Pair {
    Side client;
    Side server;
    bool tainted = false;
    bool dropping = false;
  };
  enum class Order : std::uint8_t { kSet, kCutAll, kRefuse, kAccept, kStop };

  void Tell(Order order, const Fault& fault = {});
  void Run();
  void Obey();
  void AcceptOne();
  void OnEvent(int fd, std::uint32_t events);
  void Read(const std::shared_ptr<Pair>& pair, Side& from, Side& to);
  void OnReply(Pair& pair, std::string bytes);
  void Flush(Side& side, std::int64_t now_us);
  void Watch(Side& side);
  void Drop(const std::shared_ptr<Pair>& pair);
  void Tend(const std::shared_ptr<Pair>& pair);
  std::string Garbled(std::string bytes);
  [[nodiscard]] int Timeout() const;
  [[nodiscard]] bool Hit();

  int server_port_;
  int port_ = 0;
  int listener_ = -1;
  int epoll_ = -1;
  int wake_ = -1;
  Fault fault_;  // Of the thread only.
  bool stop_ = false;
  std::mt19937 random_;
  std::unordered_map<int, std::shared_ptr<Pair>> pairs_;  // By either descriptor.

  mutable std::mutex mutex_;
  std::vector<std::pair<Order, Fault>> orders_;
  std::vector<std::int64_t> accept_times_;
  std::atomic<std::uint64_t> told_{0};
  std::atomic<std::uint64_t> obeyed_{0};
  std::atomic<int> accepted_{0};
  std::atomic<int> open_{0};
  std::atomic<int> hits_{0};
  std::thread thread_;
};

}  // namespace tidegate::redis_test
