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

/// An upstream that does what a test tells it: a real socket on a free port of this machine, and a
/// handler that is called once for each connection, on a thread of its own, and may say, keep back,
/// cut and break whatever it likes. The connection is closed when the handler returns.
class ScriptedUpstream {
 public:
  /// One connection to it, on the handler's thread.
  class Connection : public test::Stream {
   public:
    Connection(ScriptedUpstream& upstream, int fd, int number)
        : Stream(fd), upstream_(upstream), number_(number) {}

    /// From 0.
    [[nodiscard]] int number() const noexcept { return number_; }
    /// The next request's head; false: the connection ended before that. It counts as a request.
    [[nodiscard]] bool ReadHead(HttpRequest& request);
    /// The body that belongs to that head. `whole` tells whether all of it came.
    void ReadBody(HttpRequest& request) { test::ReadRequestBody(*this, request); }
    /// Both.
    [[nodiscard]] bool Read(HttpRequest& request);
    /// Blocks until the other side ends the connection, whatever it still sends. False: it did not.
    bool WaitForEnd();

   private:
    ScriptedUpstream& upstream_;
    const int number_;
  };
  using Handler = std::function<void(Connection&)>;
  using Answering = std::function<std::string(const HttpRequest&)>;

  explicit ScriptedUpstream(Handler handler);
  /// Ends all connections, and waits for the handlers.
  ~ScriptedUpstream();

  /// Answers each whole request of each connection with what `answer` returns; an empty answer
  /// ends the connection.
  [[nodiscard]] static Handler Each(Answering answer);
  /// With 200 and a short body.
  [[nodiscard]] static Handler Ok(std::string_view body = "ok");

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  /// What the next connections meet.
  void Use(Handler handler);
  /// Refuses connections from now on, and ends those that it has.
  void StopListening();
  /// On the same port as before.
  void ListenAgain();
  /// Ends all connections, optionally by a reset.
  void EndConnections(test::Stream::How how = test::Stream::How::kClose);

  [[nodiscard]] int connections() const noexcept { return connections_; }
  [[nodiscard]] int requests() const noexcept { return requests_; }
  [[nodiscard]] int open() const noexcept { return open_; }
  /// All requests whose heads came, in their order.
  [[nodiscard]] std::vector<HttpRequest> seen() const;
  [[nodiscard]] HttpRequest last() const;

 private:
  void Listen();
  void Accept();
  void Note(const HttpRequest& request);

  mutable std::mutex mutex_;
  Handler handler_;  ///< Guarded by mutex_, as the next ones.
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

/// `HTTP/1.1 200 OK` with these field lines, each with its CRLF, and a body with its length.
[[nodiscard]] std::string Http(std::string_view status_and_reason, std::string_view lines = {},
                               std::string_view body = {});

}  // namespace tidegate::behaviour
