// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "net/http_exchange.hpp"
#include "rules/listen_spec.hpp"

namespace tidegate {

/// The client certificates to which the configuration gives rights (`access.certificates`).
/// Immutable.
class Certificates {
 public:
  Certificates() = default;
  explicit Certificates(std::span<const CertificateSpec> specs)
      : specs_(specs.begin(), specs.end()) {}

  /// True if there is no list: then every certificate that was accepted has all rights.
  [[nodiscard]] bool empty() const noexcept { return specs_.empty(); }
  /// Returns the first entry that names the peer's certificate, or nullptr if none does.
  [[nodiscard]] const CertificateSpec* Find(const net::Peer& peer) const noexcept;
  /// Returns the name of the peer for logs and the audit: that of its entry, or else the subject of
  /// its certificate. REQUIRES: the peer is verified.
  [[nodiscard]] std::string NameOf(const net::Peer& peer) const;

 private:
  std::vector<CertificateSpec> specs_;
};

}  // namespace tidegate
