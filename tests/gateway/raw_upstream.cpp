// SPDX-License-Identifier: Apache-2.0
#include "gateway/raw_upstream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>

namespace tidegate::gateway_test {

RawUpstream::RawUpstream()
    : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 1024) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot start the upstream");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this] { Run(); });
}

RawUpstream::~RawUpstream() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  thread_.join();
  for (Connection& connection : connections_) Close(connection);
  close(listener_);
  close(wake_);
}

std::vector<std::string> RawUpstream::Connections() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> all;
  for (const Connection& connection : connections_) all.push_back(connection.bytes);
  return all;
}

std::vector<Message> RawUpstream::Requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

void RawUpstream::Reset() {
  const std::scoped_lock lock(mutex_);
  requests_.clear();
  std::erase_if(connections_, [](const Connection& connection) { return connection.fd < 0; });
  for (Connection& connection : connections_) {
    connection.bytes.erase(0, connection.framed);
    connection.framed = 0;
  }
}

void RawUpstream::Answer(const std::string& target, Scripted with) {
  const std::scoped_lock lock(mutex_);
  scripted_[target] = std::move(with);
}

bool RawUpstream::WaitUntilAllClosed() const {
  using namespace std::chrono_literals;
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (true) {
    {
      const std::scoped_lock lock(mutex_);
      const auto open = [](const Connection& connection) { return connection.fd >= 0; };
      if (std::none_of(connections_.begin(), connections_.end(), open)) return true;
    }
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(2ms);
  }
}

void RawUpstream::Run() {
  std::vector<pollfd> polled;
  std::vector<std::size_t> which;
  while (true) {
    polled = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    which.clear();
    {
      const std::scoped_lock lock(mutex_);
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        if (connections_[i].fd < 0) continue;
        const int events = connections_[i].out.empty() ? POLLIN : POLLIN | POLLOUT;
        polled.push_back({connections_[i].fd, static_cast<short>(events), 0});
        which.push_back(i);
      }
    }
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    const std::scoped_lock lock(mutex_);
    for (std::size_t k = 0; k < which.size(); ++k) {
      // Reset() may have moved the connections while the lock was not held.
      const auto found = std::find_if(connections_.begin(), connections_.end(),
                                      [&](const auto& c) { return c.fd == polled[k + 2].fd; });
      if (found == connections_.end() || polled[k + 2].revents == 0) continue;
      if ((polled[k + 2].revents & ~POLLOUT) != 0) Receive(*found);
      Flush(*found);
    }
    if (polled[1].revents != 0) Accept();
  }
}

void RawUpstream::Accept() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections_.emplace_back().fd = fd;
  }
}

void RawUpstream::Receive(Connection& connection) {
  std::array<char, 65536> buffer;
  while (connection.fd >= 0) {
    const ssize_t got = recv(connection.fd, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got <= 0) return Close(connection);
    connection.bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
  Frame(connection);
}

void RawUpstream::Frame(Connection& connection) {
  while (!connection.closing && connection.framed < connection.bytes.size()) {
    Message request = ReadRequest(std::string_view(connection.bytes).substr(connection.framed));
    if (request.frame == Frame::kBad) {
      connection.closing = true;
      return;
    }
    if (request.frame == Frame::kPartial) {
      if (request.head_whole && !connection.continued && request.Count("expect") != 0) {
        connection.out += "HTTP/1.1 100 Continue\r\n\r\n";
        connection.continued = true;
      }
      return;
    }
    const Scripted answer = AnswerTo(request);
    connection.out += answer.bytes;
    connection.closing = answer.then == Scripted::Then::kClose;
    connection.framed += request.size;
    connection.continued = false;
    requests_.push_back(std::move(request));
  }
}

Scripted RawUpstream::AnswerTo(const Message& request) const {
  const auto found = scripted_.find(request.target);
  if (found != scripted_.end()) return found->second;
  const std::string body = "hello";
  // nginx accepts no response head of more than 4 KiB.
  const std::string answer_to =
      request.target.size() < 2000 ? "X-Answer-To: " + request.target + "\r\n" : std::string();
  std::string answer = "HTTP/1.1 200 OK\r\n" + answer_to +
                       "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  if (request.method != "HEAD") answer += body;
  return {answer};
}

void RawUpstream::Flush(Connection& connection) {
  while (connection.fd >= 0 && !connection.out.empty()) {
    const ssize_t sent =
        send(connection.fd, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent <= 0) return Close(connection);
    connection.out.erase(0, static_cast<std::size_t>(sent));
  }
  if (connection.closing && connection.fd >= 0) {
    // Shut down both directions, so that bytes that arrive before the close are read as part of no
    // request.
    shutdown(connection.fd, SHUT_RDWR);
    Close(connection);
  }
}

void RawUpstream::Close(Connection& connection) {
  if (connection.fd >= 0) close(connection.fd);
  connection.fd = -1;
}

}  // namespace tidegate::gateway_test
