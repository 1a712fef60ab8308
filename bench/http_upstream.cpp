// SPDX-License-Identifier: Apache-2.0
#include "http_upstream.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "child.hpp"

namespace tidegate::bench {
namespace {

// A response with a body of 100 bytes.
constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\nDate: Mon, 06 Jan 2025 10:00:00 GMT\r\nContent-Type: application/json\r\n"
    "Content-Length: 100\r\n\r\n"
    R"({"id":42,"name":"a small answer","note":"of a hundred bytes, as many interfaces give it, for all!"})"
    "\n";
static_assert(kAnswer.size() - kAnswer.find("\r\n\r\n") - 4 == 100);

void Watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

HttpUpstream::HttpUpstream(int core)
    : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_.get(), 1024) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("the upstream finds no port to listen on");
  }
  port_ = ntohs(address.sin_port);
  Watch(epoll_.get(), listener_.get());
  Watch(epoll_.get(), stop_.get());
  thread_ = std::thread([this, core] {
    PinTo(core);
    Serve();
  });
}

HttpUpstream::~HttpUpstream() {
  const std::uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void HttpUpstream::Serve() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == stop_.get()) return;
      if (fd == listener_.get()) {
        Accept();
      } else if (const auto found = connections_.find(fd);
                 found != connections_.end() && !Answer(found->second)) {
        connections_.erase(found);
      }
    }
  }
}

void HttpUpstream::Accept() {
  net::Descriptor fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return;
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  Watch(epoll_.get(), fd.get());
  const int key = fd.get();
  connections_[key] = {std::move(fd), {}};
}

bool HttpUpstream::Answer(Connection& connection) {
  std::array<char, 16384> buffer;
  const ssize_t bytes = recv(connection.fd.get(), buffer.data(), buffer.size(), 0);
  if (bytes <= 0) return false;
  connection.received.append(buffer.data(), static_cast<std::size_t>(bytes));
  for (;;) {
    const std::size_t end = connection.received.find("\r\n\r\n");
    if (end == std::string::npos) return true;
    connection.received.erase(0, end + 4);
    // Count before sending: a client that has the response must find it counted.
    requests_.fetch_add(1, std::memory_order_relaxed);
    if (send(connection.fd.get(), kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(kAnswer.size())) {
      return false;
    }
  }
}

}  // namespace tidegate::bench
