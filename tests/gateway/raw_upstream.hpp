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

/// Bytes that an upstream sends as the response to a request, and whether it then closes the
/// connection.
struct Scripted {
  enum class Then : std::uint8_t { kKeep, kClose };
  std::string bytes;
  Then then = Then::kKeep;
};

/// A server on a free port of 127.0.0.1, with its own thread, that records every byte it receives.
/// It answers each well-framed request with a small 200 whose X-Answer-To names the target (if that
/// is not too long for a proxy), and closes the connection after bytes that it cannot frame. All
/// functions may be called from any thread.
class RawUpstream {
 public:
  RawUpstream();
  ~RawUpstream();
  RawUpstream(const RawUpstream&) = delete;
  RawUpstream& operator=(const RawUpstream&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }

  /// Returns all bytes of each connection so far, in the order in which the connections were
  /// accepted.
  [[nodiscard]] std::vector<std::string> Connections() const;
  /// Returns the complete requests so far, in the order in which they became complete.
  [[nodiscard]] std::vector<Message> Requests() const;
  /// Forgets all recorded bytes; open connections stay open and record from the next byte.
  void Reset();
  /// From now on, answers requests for `target` with `with`.
  void Answer(const std::string& target, Scripted with);
  /// Waits until no connection is open. Returns false on timeout.
  [[nodiscard]] bool WaitUntilAllClosed() const;

 private:
  struct Connection {
    int fd = -1;  ///< Socket; -1: closed.
    std::string bytes;
    std::size_t framed = 0;  ///< Number of bytes of `bytes` that belong to complete requests.
    bool continued = false;  ///< 100 was sent for the request that begins at `framed`.
    std::string out;         ///< Bytes of responses that are not sent yet.
    bool closing = false;    ///< Close the connection when all bytes of `out` are sent.
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
