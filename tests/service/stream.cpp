// SPDX-License-Identifier: Apache-2.0
#include "service/stream.hpp"

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "service/fixture.hpp"

namespace tidegate::service {

Stream::Stream(const net::Endpoint& to, int receive_buffer)
    : fd_(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (receive_buffer != 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  EXPECT_EQ(::connect(fd_, to.address(), to.size()), 0) << to.Text();
}

Stream::~Stream() { ::close(fd_); }

bool Stream::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Stream::Got Stream::Receive(std::string& to) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (got == 0) return Got::kEnd;
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Got::kNothing : Got::kCut;
  to.append(buffer.data(), static_cast<std::size_t>(got));
  return Got::kBytes;
}

void Stream::EndSending() { ::shutdown(fd_, SHUT_WR); }

}  // namespace tidegate::service
