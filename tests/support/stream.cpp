// SPDX-License-Identifier: Apache-2.0
#include "support/stream.hpp"

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace tidegate::test {
namespace {

/// Makes the next close reset the connection.
void ResetOnClose(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

Stream::Stream(const net::Endpoint& to, int receive_buffer)
    : fd_(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  SetOptions();
  if (receive_buffer != 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  EXPECT_EQ(::connect(fd_, to.address(), to.size()), 0) << to.Text();
}

Stream::Stream(int fd) : fd_(fd) { SetOptions(); }

Stream::~Stream() { Close(); }

void Stream::SetOptions() {
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool Stream::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void Stream::EndSending() { ::shutdown(fd_, SHUT_WR); }

void Stream::Reset() {
  ResetOnClose(fd_);
  Close();
}

void Stream::Close() {
  const std::lock_guard lock(closing_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Stream::Wake(How how) {
  const std::lock_guard lock(closing_);
  if (fd_ < 0) return;
  if (how == How::kReset) ResetOnClose(fd_);
  // Closing the sending direction too would look like an orderly end to the other side.
  ::shutdown(fd_, how == How::kReset ? SHUT_RD : SHUT_RDWR);
}

Stream::Got Stream::Receive(std::string& to) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (got == 0) return Got::kEnd;
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Got::kNothing : Got::kCut;
  to.append(buffer.data(), static_cast<std::size_t>(got));
  return Got::kBytes;
}

Stream::Got Stream::Receive() {
  const Got got = Receive(received_);
  reads_ += got == Got::kBytes ? 1 : 0;
  return got;
}

std::string Stream::ReadUntil(std::string_view end) {
  std::size_t at = 0;
  while ((at = received_.find(end)) == std::string::npos) {
    if (Receive() != Got::kBytes) return std::exchange(received_, {});
  }
  return ReadExactly(at + end.size());
}

std::string Stream::ReadExactly(std::size_t count) {
  while (received_.size() < count && Receive() == Got::kBytes) {
  }
  std::string text = received_.substr(0, count);
  received_.erase(0, text.size());
  return text;
}

std::string Stream::ReadRest() {
  while (Receive() == Got::kBytes) {
  }
  return std::exchange(received_, {});
}

bool Stream::Readable(std::chrono::milliseconds at_most) {
  if (!received_.empty()) return true;
  pollfd poll{.fd = fd_, .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, static_cast<int>(at_most.count())) == 1;
}

Stream::End Stream::WaitForEnd(std::chrono::milliseconds at_most) {
  if (!received_.empty()) return End::kBytes;
  if (!Readable(at_most)) return End::kOpen;
  switch (Receive()) {
    case Got::kBytes: return End::kBytes;
    case Got::kEnd: return End::kClosed;
    case Got::kCut: return End::kReset;
    case Got::kNothing: break;
  }
  return End::kOpen;
}

}  // namespace tidegate::test
