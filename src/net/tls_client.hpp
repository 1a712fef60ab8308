// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "tidegate/error.hpp"

namespace tidegate::net {

/// The results of a read or a write that are no number of bytes.
inline constexpr ssize_t kIoWait = -1;
inline constexpr ssize_t kIoBroken = -2;

/// One TLS connection of a client, over a socket that does not block.
class TlsSession {
 public:
  enum class Shake : unsigned char { kDone, kMore, kFailed };

  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Again whenever the socket is ready, until it is done. kFailed: see problem().
  [[nodiscard]] Shake Handshake();
  /// Bytes, 0 at the end, kIoWait or kIoBroken.
  [[nodiscard]] ssize_t Read(char* data, std::size_t size);
  [[nodiscard]] ssize_t Write(const char* data, std::size_t size);
  /// Bytes that came and were not read: inside, where no poll of the socket sees them.
  [[nodiscard]] bool HasPending() const noexcept;
  /// Says goodbye, once, without waiting for an answer.
  void Close() noexcept;
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  friend class TlsClient;
  struct Impl;
  explicit TlsSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  std::string problem_;
};

/// How this process speaks TLS to one kind of server. Immutable and thread-safe.
class TlsClient {
 public:
  struct Options {
    std::string ca_pem;           ///< Empty: the system's authorities.
    std::string certificate_pem;  ///< Of this side, with its chain; empty: none.
    std::string key_pem;
    bool verify = true;
  };
  [[nodiscard]] static Result<std::shared_ptr<const TlsClient>> Make(const Options& options);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  /// `name`: what the certificate must be for, a host name or an address. nullptr: no memory.
  [[nodiscard]] std::unique_ptr<TlsSession> NewSession(int socket, const std::string& name) const;

 private:
  struct Impl;
  explicit TlsClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidegate::net
