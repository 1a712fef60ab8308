// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/tls_spec.hpp"
#include "tidegate/error.hpp"

struct x509_st;     // OpenSSL's X509.
struct ssl_ctx_st;  // OpenSSL's SSL_CTX.

namespace tidegate::net {

/// The names in a client certificate that was accepted. Immutable; all copies of a Peer share it.
struct PeerCertificate {
  static constexpr std::size_t kMaxSubject = 256;
  static constexpr std::size_t kMaxUri = 2048;  ///< The longest SPIFFE ID.
  static constexpr std::size_t kMaxDnsName = 253;
  /// The most names that are kept of each kind; further names are dropped.
  static constexpr std::size_t kMaxNames = 16;

  /// The subject as in `CN=ops,O=Example` (RFC 2253): printable ASCII, other bytes escaped; empty
  /// if there is none. A longer one is cut to kMaxSubject bytes, the last three of them `...`.
  std::string subject = {};
  /// The alternative names, without those that are too long or not printable ASCII.
  std::vector<std::string> uris = {};
  std::vector<std::string> dns_names = {};  ///< The DNS names, in lower case.

  /// Returns the name for logs: the subject, first URI, first DNS name, or `(certificate)`.
  [[nodiscard]] std::string_view Name() const noexcept {
    if (!subject.empty()) return subject;
    if (!uris.empty()) return uris.front();
    if (!dns_names.empty()) return dns_names.front();
    return "(certificate)";
  }

  [[nodiscard]] static std::shared_ptr<const PeerCertificate> Read(const x509_st* certificate);
};

/// Results of a read or a write that are not a number of bytes.
inline constexpr ssize_t kIoWait = -1;
inline constexpr ssize_t kIoBroken = -2;

/// One TLS connection, as a client or as a server, over a non-blocking socket.
class TlsSession {
 public:
  enum class Shake : unsigned char { kDone, kMore, kFailed };
  /// The cause of a failure, for the advice in error messages.
  enum class Cause : unsigned char {
    kOther,
    kUnknownIssuer,       ///< No trusted authority has signed the peer's certificate.
    kOtherName,           ///< The peer's certificate is for other names: see PeerNames().
    kOutOfDate,           ///< The peer's certificate has expired, or is not valid yet.
    kWantsCertificate,    ///< The peer requires a certificate, and this side presented none.
    kRefusesCertificate,  ///< The peer does not accept the certificate that this side presented.
  };

  /// The way in which the other side's certificate made the handshake fail, if it did.
  enum class CertificateFault : unsigned char {
    kNone,     ///< The handshake did not fail because of the certificate.
    kMissing,  ///< The other side presented no certificate, and this side requires one.
    kRefused,  ///< The certificate is not accepted, or the other side does not have its key.
  };

  ~TlsSession();

  /// Continues the handshake. Call it again whenever the socket is ready, until the handshake is
  /// done. kFailed: see problem().
  [[nodiscard]] Shake Handshake();
  /// Returns the number of bytes, 0 at the end, kIoWait or kIoBroken.
  [[nodiscard]] ssize_t Read(char* data, std::size_t size);
  [[nodiscard]] ssize_t Write(const char* data, std::size_t size);
  /// Returns true if the session holds unread bytes, which poll and epoll do not report.
  [[nodiscard]] bool HasPending() const noexcept;
  /// After kMore or kIoWait: returns true if the caller must wait until the socket is writable,
  /// false if until it is readable.
  [[nodiscard]] bool wants_to_write() const noexcept;
  /// Sends close_notify, once, without waiting for the peer's.
  void Close() noexcept;
  /// Returns what failed in the handshake or in a read.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Returns the cause of problem().
  [[nodiscard]] Cause cause() const noexcept { return cause_; }
  /// Returns how the other side's certificate caused problem(), if it did.
  [[nodiscard]] CertificateFault certificate_fault() const noexcept { return certificate_fault_; }
  /// Returns the names and addresses in the peer's certificate, even if it was not accepted. The
  /// text is untrusted.
  [[nodiscard]] std::vector<std::string> PeerNames() const;
  /// Returns true if the peer presented a certificate, and it was accepted.
  [[nodiscard]] bool verified() const noexcept;
  /// Returns the names in the other side's certificate. REQUIRES: verified().
  [[nodiscard]] std::shared_ptr<const PeerCertificate> Certificate() const;
  /// After a failed handshake: returns true if the peer does not speak TLS at all.
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

/// The TLS settings for connections to one kind of server. Immutable and thread-safe.
class TlsClient {
 public:
  /// The protocol that the handshake announces (ALPN).
  enum class Protocol : std::uint8_t { kHttp1, kNone };
  /// The caller gives NewSession the name of the server; `spec.server_name` is not used.
  [[nodiscard]] static Result<std::shared_ptr<const TlsClient>> Make(
      const TlsClientSpec& spec, Protocol protocol = Protocol::kHttp1);
  /// Returns a session that requires a certificate for `name`, a host name or an address. Returns
  /// nullptr if there is no memory.
  [[nodiscard]] std::unique_ptr<TlsSession> NewSession(int socket, const std::string& name) const;

 private:
  explicit TlsClient(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace tidegate::net
