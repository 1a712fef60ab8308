// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "net/http_listener.hpp"
#include "net/reactor.hpp"

namespace tidegate::service {

using namespace std::chrono_literals;

/// A blocking client of a port on loopback.
class Client {
 public:
  explicit Client(std::uint16_t port, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer != 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { Close(); }

  bool Send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Returns the received bytes once they contain `until`, the connection ends, or the timeout
  /// expires.
  std::string Receive(std::string_view until, std::chrono::milliseconds timeout = 2s) const {
    std::string got;
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (until.empty() || got.find(until) == std::string::npos) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      pollfd ready{fd_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) break;
      char buffer[65536];
      const ssize_t count = ::recv(fd_, buffer, sizeof buffer, 0);
      if (count <= 0) break;
      got.append(buffer, static_cast<std::size_t>(count));
    }
    return got;
  }

  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  /// Closes the connection with a reset.
  void Abort() {
    const linger hard{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    Close();
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool connected() const { return connected_; }

 private:
  int fd_ = -1;
  bool connected_ = false;
};

inline net::Deadlines::Durations Patient() { return {60s, 60s, 60s, 60s, 1s}; }

/// One reactor in its own thread, with one listener on a free port.
class Service {
 public:
  explicit Service(net::HttpHandler& handler,
                   const net::Deadlines::Durations& deadlines = Patient(),
                   net::HttpListener::Options options = {})
      : reactor_(std::make_unique<net::Reactor>(deadlines)) {
    auto endpoint = net::Endpoint::Parse("127.0.0.1:0").value();
    auto socket = net::Listen(endpoint).value();
    port_ = net::Endpoint::OfSocket(socket.get()).port();
    options.open = &open_;
    listener_ = std::make_unique<net::HttpListener>(*reactor_, std::move(socket), handler, options);
  }
  ~Service() { Stop(); }
  void Start() {
    listener_->Start();
    thread_ = std::thread([this] { reactor_->Run(std::nullopt); });
  }
  void Stop() {
    if (reactor_ != nullptr) reactor_->Stop();
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  net::Reactor& reactor() { return *reactor_; }
  net::HttpListener& listener() { return *listener_; }
  /// Destroys the listener and then the reactor, as Server does; both must be destroyed before the
  /// store.
  void Destroy() {
    Stop();
    listener_.reset();
    reactor_.reset();
  }

 private:
  std::atomic<std::size_t> open_{0};
  std::unique_ptr<net::Reactor> reactor_;
  std::unique_ptr<net::HttpListener> listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

/// Responds with the body of the request.
class Echo final : public net::HttpHandler {
 public:
  void Handle(net::HttpExchange& exchange) noexcept override {
    const std::string body(exchange.body());
    exchange.Begin(200);
    exchange.End("text/plain", body);
  }
};

inline std::string Post(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace tidegate::service
