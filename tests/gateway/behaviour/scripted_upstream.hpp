// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gateway/behaviour/wire.hpp"

namespace tidegate::behaviour {

/// An upstream whose behaviour the test scripts. It listens on a free port of this machine and
/// calls a handler for each connection, on a thread of its own. The handler may send, delay, cut
/// and malform responses. The connection is closed when the handler returns.
class ScriptedUpstream {
 public:
  /// One connection to the upstream. Used on the handler's thread only.
  class Connection : public test::Stream {
   public:
    Connection(ScriptedUpstream& upstream, int fd, int number)
        : Stream(fd), upstream_(upstream), number_(number) {}

    /// Number of this connection, from 0, in the order of acceptance.
    [[nodiscard]] int number() const noexcept { return number_; }
    /// Reads the head of the next request and counts that request. Returns false if the connection
    /// ends first.
    [[nodiscard]] bool ReadHead(HttpRequest& request);
    /// Reads the body that belongs to the head in `request`. Sets `request.whole` to false if it is
    /// incomplete.
    void ReadBody(HttpRequest& request) { test::ReadRequestBody(*this, request); }
    /// Reads the head and the body of the next request. Returns false if the connection ends first.
    [[nodiscard]] bool Read(HttpRequest& request);
    /// Reads and drops bytes until the other side ends the connection. Returns false if it does
    /// not.
    bool WaitForEnd();

   private:
    ScriptedUpstream& upstream_;
    const int number_;
  };
  using Handler = std::function<void(Connection&)>;
  using Answering = std::function<std::string(const HttpRequest&)>;

  explicit ScriptedUpstream(Handler handler);
  /// Ends all connections and waits until all handlers have returned.
  ~ScriptedUpstream();

  /// Returns a handler that answers each complete request with what `answer` returns; an empty
  /// response ends the connection.
  [[nodiscard]] static Handler Each(Answering answer);
  /// Returns a handler that answers each request with 200 and `body`.
  [[nodiscard]] static Handler Ok(std::string_view body = "ok");

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  /// Replaces the handler for connections that are accepted from now on.
  void Use(Handler handler);
  /// Refuses new connections from now on, and ends the open ones.
  void StopListening();
  /// Listens again on the same port as before.
  void ListenAgain();
  /// Ends all connections, optionally by a reset.
  void EndConnections(test::Stream::How how = test::Stream::How::kClose);

  [[nodiscard]] int connections() const noexcept { return connections_; }
  [[nodiscard]] int requests() const noexcept { return requests_; }
  [[nodiscard]] int open() const noexcept { return open_; }
  /// Returns all requests whose heads arrived, in order of arrival.
  [[nodiscard]] std::vector<HttpRequest> seen() const;
  [[nodiscard]] HttpRequest last() const;

 private:
  void Listen();
  void Accept();
  void Note(const HttpRequest& request);

  mutable std::mutex mutex_;
  Handler handler_;  ///< Guarded by mutex_, like the members up to threads_.
  std::vector<HttpRequest> seen_;
  std::list<std::unique_ptr<Connection>> sockets_;
  std::vector<std::thread> threads_;
  std::atomic<int> listener_{-1};
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<int> connections_{0};
  std::atomic<int> requests_{0};
  std::atomic<int> open_{0};
  std::thread acceptor_;
};

/// Returns the bytes of a response with the status `status_and_reason` (such as `200 OK`), the
/// field lines `lines`, each with its CRLF, and `body` with its Content-Length.
[[nodiscard]] std::string Http(std::string_view status_and_reason, std::string_view lines = {},
                               std::string_view body = {});

}  // namespace tidegate::behaviour
