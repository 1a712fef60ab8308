// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace tidegate::net {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { Close(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
  void Close() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

/// Ends the sending half of a connection whose further input will be dropped.
///
/// This makes a rejected client that keeps sending single bytes cheap: the system reports input
/// only in portions of 16 KiB, or when the other side closes, and acknowledges it at once. (With
/// thousands of such clients, the timers of delayed acknowledgements ran for 250 us at a time.) A
/// client that sends its whole body before it reads the response is not delayed.
inline void ShutdownAndDropInput(int socket) noexcept {
  constexpr int kPortion = 16 << 10;
  (void)::shutdown(socket, SHUT_WR);
  (void)::setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &kPortion, sizeof kPortion);
  constexpr int kOn = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &kOn, sizeof kOn);
}

}  // namespace tidegate::net
