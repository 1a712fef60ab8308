// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cli/dial.hpp"
#include "net/descriptor.hpp"
#include "net/tls_client.hpp"

namespace tidegate::cli {

/// Holds SIGPIPE back on this thread, and forgets one that came meanwhile: OpenSSL writes without
/// saying that it wants none. That of the process's output stays as it is.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal();
  ~WithoutPipeSignal();
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  bool was_blocked_ = false;
};

/// The bytes of one connection, with TLS or without, within a deadline, which outlives it. For the
/// thread that made it.
class Stream {
 public:
  enum class Got : std::uint8_t {
    kBytes,
    kEnd,   ///< In good order.
    kCut,   ///< A reset, or a failure; with TLS, an end without a word too. See problem().
    kLate,  ///< The time is up, or the wait was cancelled.
  };
  enum class Shaken : std::uint8_t { kDone, kFailed, kLate };

  Stream(net::Descriptor socket, const Deadline& deadline)
      : socket_(std::move(socket)), deadline_(deadline) {}
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Before all else: TLS with a server whose certificate is for `name`. kFailed: see tls(), which
  /// is nullptr where there was no memory.
  [[nodiscard]] Shaken Secure(const net::TlsClient& client, const std::string& name);
  /// False: kLate. That the other side takes no more is no failure here: it may have answered
  /// before it closed.
  [[nodiscard]] bool Send(std::string_view bytes);
  /// Adds what comes next to `to`.
  [[nodiscard]] Got Receive(std::string& to);

  [[nodiscard]] const net::TlsSession* tls() const noexcept { return tls_.get(); }
  /// What the system or the other side's alert said of a kCut; empty: nothing.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  /// What to wait for, of poll: `plain` without TLS.
  [[nodiscard]] short Events(short plain) const noexcept;
  [[nodiscard]] ssize_t Read(char* data, std::size_t size);
  [[nodiscard]] ssize_t Write(std::string_view bytes);

  WithoutPipeSignal quiet_;
  net::Descriptor socket_;
  const Deadline& deadline_;
  std::unique_ptr<net::TlsSession> tls_;
  std::string problem_;
  bool broken_ = false;
};

}  // namespace tidegate::cli
