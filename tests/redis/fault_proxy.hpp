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

/// The way in which a FaultProxy changes or delays the bytes that it forwards. Every kind applies
/// to open connections and to new ones.
struct Fault {
  enum class Kind : std::uint8_t {
    kPass,
    kDelayReplies,  ///< Forwards each piece of a reply `delay` later.
    /// Redis executes the command, but the reply is lost: from the first affected piece on, all
    /// pieces of the connection are dropped.
    kDropReplies,
    kCutReplies,  ///< Forwards `bytes` bytes of a piece and then resets the connection.
    kGarble,      ///< Flips bits, inserts junk and changes lengths inside a piece.
    kStall,       ///< Reads nothing, in neither direction.
  };
  Kind kind = Kind::kPass;
  std::chrono::milliseconds delay{0};
  std::size_t bytes = 0;
  double share = 1.0;  ///< Share of the reply pieces that are affected, from 0 to 1.
};

/// A proxy on 127.0.0.1 between Tidegate and Redis that injects faults on demand, in a thread of
/// its own. A "reply" is what comes from the server. Thread-safe.
///
/// When the fault changes, the proxy resets every connection whose bytes it dropped or changed: no
/// network removes bytes from the middle of a TCP stream and then goes on.
class FaultProxy {
 public:
  explicit FaultProxy(int server_port, std::uint32_t seed = 1);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

  /// Replaces the fault. The new fault is in force when the call returns.
  void Set(const Fault& fault);
  void Pass() { Set(Fault{}); }
  /// Resets all open connections.
  void CutAll();
  /// Refuses new connections, as if no server listened on the port. Accept() reverts this.
  void Refuse();
  void Accept();

  [[nodiscard]] int accepted() const noexcept { return accepted_; }
  [[nodiscard]] int open() const noexcept { return open_; }
  /// Number of reply pieces that a fault has affected.
  [[nodiscard]] int hits() const noexcept { return hits_; }
  /// Returns the times at which connections were accepted, in microseconds of the steady clock.
  [[nodiscard]] std::vector<std::int64_t> AcceptTimes() const;

 private:
  struct Piece {
    std::int64_t due_us;
    std::string bytes;
  };
  /// One end of a forwarded connection.
  struct Side {
    int fd = -1;
    std::deque<Piece> out;  ///< Pieces to write to `fd`.
    bool ended = false;     ///< `fd` has reached the end of its stream.
    std::uint32_t watched = 0;
  };
  struct Pair {
    Side client;
    Side server;
    bool tainted = false;
    bool dropping = false;
  };
  enum class Order : std::uint8_t { kSet, kCutAll, kRefuse, kAccept, kStop };

  void SendOrder(Order order, const Fault& fault = {});
  void Run();
  void ExecuteOrders();
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
  Fault fault_;  // Used by the proxy's thread only.
  bool stop_ = false;
  std::mt19937 random_;
  // Indexed by either descriptor of the pair.
  std::unordered_map<int, std::shared_ptr<Pair>> pairs_;

  mutable std::mutex mutex_;
  std::vector<std::pair<Order, Fault>> orders_;
  std::vector<std::int64_t> accept_times_;
  std::atomic<std::uint64_t> orders_sent_{0};
  std::atomic<std::uint64_t> orders_executed_{0};
  std::atomic<int> accepted_{0};
  std::atomic<int> open_{0};
  std::atomic<int> hits_{0};
  std::thread thread_;
};

}  // namespace tidegate::redis_test
