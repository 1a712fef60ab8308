// SPDX-License-Identifier: Apache-2.0
#include "http_load.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tidegate::bench {

std::size_t AnswerBytes(std::string_view text) {
  const std::size_t head = text.find("\r\n\r\n");
  if (head == std::string_view::npos) return 0;
  std::size_t at = text.find("Content-Length: ");
  if (at > head) at = text.find("content-length: ");  // HAProxy writes the name in lower case.
  std::size_t length = 0;
  if (at < head) std::from_chars(text.data() + at + 16, text.data() + head, length);
  const std::size_t all = head + 4 + length;
  return text.size() < all ? 0 : all;
}

HttpLoad::HttpLoad(int port, int connections,
                   std::function<const std::string&(std::uint64_t)> request, Addresses addresses)
    : port_(port),
      addresses_(addresses),
      request_(std::move(request)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      connections_(static_cast<std::size_t>(connections)) {
  for (Connection& connection : connections_) Open(connection);
}

HttpLoad::~HttpLoad() {
  for (const Connection& connection : connections_) close(connection.fd);
  close(epoll_);
}

void HttpLoad::Open(Connection& connection) {
  connection.fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (addresses_ == Addresses::kOneEach) {
    const auto number = static_cast<std::uint32_t>(&connection - connections_.data());
    // 127.1.0.1, 127.1.0.2 and so on.
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 0x10000 + number);
    (void)bind(connection.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  if (connect(connection.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("the server under load does not accept connections");
  }
  const int on = 1;
  setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &connection;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event);
  connection.received.clear();
  connection.waiting = false;
}

void HttpLoad::Send(Connection& connection) {
  const std::string& request = request_(sent_++);
  if (send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    throw std::runtime_error("cannot send a request to the server under load");
  }
  connection.waiting = true;
  ++open_requests_;
}

void HttpLoad::OnReadable(Connection& connection) {
  std::array<char, 16384> buffer;
  const ssize_t bytes = recv(connection.fd, buffer.data(), buffer.size(), 0);
  if (bytes <= 0) {
    ++outcome_.failed;
    if (connection.waiting) --open_requests_;
    close(connection.fd);
    Open(connection);
    if (sending_) Send(connection);
    return;
  }
  connection.received.append(buffer.data(), static_cast<std::size_t>(bytes));
  const std::size_t answer = AnswerBytes(connection.received);
  if (answer == 0) return;
  ++outcome_.answers;
  if (connection.received.starts_with("HTTP/1.1 200")) ++outcome_.ok;
  connection.received.erase(0, answer);
  connection.waiting = false;
  --open_requests_;
  if (sending_) Send(connection);
}

HttpLoad::Outcome HttpLoad::Run(double seconds) {
  using Clock = std::chrono::steady_clock;
  outcome_ = {};
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  sending_ = true;
  for (Connection& connection : connections_) Send(connection);
  std::array<epoll_event, 64> events;
  while (open_requests_ > 0) {
    const int count = epoll_wait(epoll_, events.data(), events.size(), 1000);
    if (count <= 0) throw std::runtime_error("the server under load does not respond");
    for (int i = 0; i < count; ++i) {
      OnReadable(*static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr));
    }
    if (sending_ && Clock::now() >= end) sending_ = false;
  }
  return outcome_;
}

}  // namespace tidegate::bench
