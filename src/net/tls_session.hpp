// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "net/peer_certificate.hpp"

namespace tidegate::net {

/// The results of a read or a write that are no number of bytes.
inline constexpr ssize_t kIoWait = -1;
inline constexpr ssize_t kIoBroken = -2;

/// One TLS connection, of either side, over a socket that does not block.
class TlsSession {
 public:
  enum class Shake : unsigned char { kDone, kMore, kFailed };
  /// What a failure comes from, for those who tell people what to do about it.
  enum class Cause : unsigned char {
    kOther,
    kUnknownIssuer,     ///< No authority that is believed here has signed the other's certificate.
    kOtherName,         ///< It is for others: see PeerNames().
    kOutOfDate,         ///< It is not valid any more, or not yet.
    kWantsCertificate,  ///< The other side wants to see one, and this side has shown none.
    kRefusesCertificate,  ///< The other side does not accept the one that was shown.
  };

  /// How the other side's certificate made the handshake fail, if it did.
  enum class CertificateFault : unsigned char {
    kNone,     ///< The handshake did not fail because of the certificate.
    kMissing,  ///< The other side presented none, and this side requires one.
    kRefused,  ///< It is not valid here, or the other side does not have its key.
  };

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
  /// After a kMore or kIoWait: for what the socket must be ready before it is tried again.
  [[nodiscard]] bool wants_to_write() const noexcept;
  /// Says goodbye, once, without waiting for an answer.
  void Close() noexcept;
  /// What failed in the handshake, or in a read: the other side's alert.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Of problem().
  [[nodiscard]] Cause cause() const noexcept { return cause_; }
  /// Returns how the other side's certificate caused problem(), if it did.
  [[nodiscard]] CertificateFault certificate_fault() const noexcept { return certificate_fault_; }
  /// Whom the other side's certificate is for, accepted or not: names and addresses, foreign text.
  [[nodiscard]] std::vector<std::string> PeerNames() const;
  /// The other side has shown a certificate, and it was accepted.
  [[nodiscard]] bool verified() const noexcept;
  /// Returns the names in the other side's certificate. REQUIRES: verified().
  [[nodiscard]] std::shared_ptr<const PeerCertificate> Certificate() const;
  /// After a handshake that failed: the other side does not speak TLS at all.
  [[nodiscard]] bool plain() const noexcept { return plain_; }

 private:
  friend class TlsClient;
  friend class TlsServer;
  struct Impl;
  explicit TlsSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  std::string problem_;
  Cause cause_ = Cause::kOther;
  CertificateFault certificate_fault_ = CertificateFault::kNone;
  bool plain_ = false;
};

}  // namespace tidegate::net
