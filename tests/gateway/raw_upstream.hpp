// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gateway/strict_reader.hpp"

namespace tidegate::gateway_test {

/// What an upstream answers to a request, byte by byte.
struct Scripted {
  enum class Then : std::uint8_t { kKeep, kClose };
  std::string bytes;
  Then then = Then::kKeep;
};

/// A server on a free port of 127.0.0.1, on a thread of its own, that keeps every byte it is sent.
/// It answers each well-framed request with a small 200 whose X-Answer-To names the target (if that
/// is not too long for a proxy), and closes after what it cannot frame. All functions may be called
/// from any thread.
class RawUpstream {
 public:
  RawUpstream();
  ~RawUpstream();
  RawUpstream(const RawUpstream&) = delete;
  RawUpstream& operator=(const RawUpstream&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }

  /// All bytes of each connection so far, in the order in which they were accepted.
  [[nodiscard]] std::vector<std::string> Connections() const;
  /// The whole requests so far, in the order in which they became whole.
  [[nodiscard]] std::vector<Message> Requests() const;
  /// Forgets what came; open connections stay open and record from the next byte.
  void Reset();
  /// From now on requests for `target` are answered so.
  void Answer(const std::string& target, Scripted with);
  /// False: after so long there still are connections.
  [[nodiscard]] bool WaitUntilAllClosed() const;

 private:
  struct Connection {
    int fd = -1;  ///< -1: closed.
    std::string bytes;
    std::size_t framed = 0;  ///< Of `bytes`, what is whole requests.
    bool continued = false;  ///< 100 was sent for the request that begins there.
    std::string out;         ///< Not yet sent.
    bool closing = false;    ///< When all is sent.
  };

  void Run();
  void Accept();
  void Receive(Connection& connection);
  void Frame(Connection& connection);
  void Flush(Connection& connection);
  static void Close(Connection& connection);
  [[nodiscard]] Scripted AnswerTo(const Message& request) const;

  int listener_ = -1;
  int wake_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<Connection> connections_;
  std::vector<Message> requests_;
  std::map<std::string, Scripted> scripted_;
  std::jthread thread_;
};

}  // namespace tidegate::gateway_test
