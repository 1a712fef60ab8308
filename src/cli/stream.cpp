// SPDX-License-Identifier: Apache-2.0
#include "cli/stream.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <system_error>

namespace tidegate::cli {
namespace {

sigset_t PipeSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

WithoutPipeSignal::WithoutPipeSignal() {
  const sigset_t pipe = PipeSignal();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  was_blocked_ = sigismember(&before, SIGPIPE) == 1;
}

WithoutPipeSignal::~WithoutPipeSignal() {
  if (was_blocked_) return;
  const sigset_t pipe = PipeSignal();
  const timespec at_once{};
  while (sigtimedwait(&pipe, nullptr, &at_once) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}

Stream::~Stream() {
  if (tls_ != nullptr && !broken_) tls_->Close();
}

Stream::Shaken Stream::Secure(const net::TlsClient& client, const std::string& name) {
  tls_ = client.NewSession(socket_.get(), name);
  if (tls_ == nullptr) return Shaken::kFailed;
  for (;;) {
    switch (tls_->Handshake()) {
      case net::TlsSession::Shake::kDone:
        return Shaken::kDone;
      case net::TlsSession::Shake::kFailed:
        broken_ = true;
        return Shaken::kFailed;
      case net::TlsSession::Shake::kMore:
        break;
    }
    if (!deadline_.Wait(socket_.get(), Events(POLLIN))) return Shaken::kLate;
  }
}

short Stream::Events(short plain) const noexcept {
  if (tls_ == nullptr) return plain;
  return tls_->wants_to_write() ? POLLOUT : POLLIN;
}

/// Bytes, 0 at the end, net::kIoWait or net::kIoBroken; likewise Write.
ssize_t Stream::Read(char* data, std::size_t size) {
  if (tls_ != nullptr) {
    const ssize_t got = tls_->Read(data, size);
    if (got == net::kIoBroken) problem_ = tls_->problem();
    return got;
  }
  for (;;) {
    const ssize_t got = recv(socket_.get(), data, size, 0);
    if (got >= 0) return got;
    if (errno == EAGAIN) return net::kIoWait;
    if (errno == EINTR) continue;
    if (errno != ECONNRESET) problem_ = std::generic_category().message(errno);
    return net::kIoBroken;
  }
}

ssize_t Stream::Write(std::string_view bytes) {
  if (tls_ != nullptr) return tls_->Write(bytes.data(), bytes.size());
  for (;;) {
    const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    if (errno == EAGAIN) return net::kIoWait;
    if (errno != EINTR) return net::kIoBroken;
  }
}

bool Stream::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = Write(bytes);
    if (sent == net::kIoBroken) return true;  // Why, can only be read.
    if (sent == net::kIoWait) {
      if (!deadline_.Wait(socket_.get(), Events(POLLOUT))) return false;
    } else {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  return true;
}

Stream::Got Stream::Receive(std::string& to) {
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t got = Read(chunk.data(), chunk.size());
    if (got > 0) {
      to.append(chunk.data(), static_cast<std::size_t>(got));
      return Got::kBytes;
    }
    if (got == 0) return Got::kEnd;
    if (got == net::kIoBroken) {
      broken_ = true;
      return Got::kCut;
    }
    if (!deadline_.Wait(socket_.get(), Events(POLLIN))) return Got::kLate;
  }
}

}  // namespace tidegate::cli
