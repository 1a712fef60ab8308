// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct x509_st;  // OpenSSL's X509.

namespace tidegate::net {

/// The names in a client certificate that was accepted. Immutable; all copies of a Peer share it.
struct PeerCertificate {
  static constexpr std::size_t kMaxSubject = 256;
  static constexpr std::size_t kMaxUri = 2048;  ///< The longest SPIFFE ID.
  static constexpr std::size_t kMaxDnsName = 253;
  static constexpr std::size_t kMaxNames = 16;  ///< Of each kind; further names are not kept.

  /// The subject as RFC 2253 writes it, as in `CN=ops,O=Example`: printable ASCII, other bytes
  /// escaped. Empty if the certificate has none. A longer one is cut to exactly kMaxSubject bytes,
  /// of which the last three are `...`.
  std::string subject = {};
  /// The alternative names, without those that are too long or not printable ASCII.
  std::vector<std::string> uris = {};
  std::vector<std::string> dns_names = {};  ///< In lower case.

  /// Returns the name for logs: the subject, or else the first URI, the first DNS name, or
  /// `(certificate)`.
  [[nodiscard]] std::string_view Name() const noexcept;

  [[nodiscard]] static std::shared_ptr<const PeerCertificate> Read(const x509_st* certificate);
};

}  // namespace tidegate::net
