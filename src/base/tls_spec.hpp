// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidegate {

/// TLS of a connection that this process opens: which server to trust, and its own certificate.
struct TlsClientSpec {
  std::string ca_pem = {};  ///< The trusted authorities; empty: those of the system.
  /// The certificate of this process with its chain; empty: none.
  std::string certificate_pem = {};
  std::string key_pem = {};
  /// The name that the server's certificate must have; empty: the host that is connected to.
  std::string server_name = {};
  bool verify = true;  ///< False: any server is trusted.
  friend bool operator==(const TlsClientSpec&, const TlsClientSpec&) = default;
};

/// TLS of a listener. A reload can change its values, but not whether there is TLS at all.
struct ListenTls {
  struct Certificate {
    std::string certificate_pem = {};  ///< The certificate with its chain.
    std::string key_pem = {};
    friend bool operator==(const Certificate&, const Certificate&) = default;
  };
  /// Whether clients may or must present a certificate issued by an authority in `client_ca_pem`.
  enum class Clients : std::uint8_t { kNone, kOptional, kRequired };
  enum class Version : std::uint8_t { kTls12, kTls13 };

  /// At least one. A client gets the certificate for the name that it requests: a certificate for
  /// the whole name, or with a wildcard for its first label; otherwise the first certificate. Of
  /// several certificates for the same names with different kinds of keys, it gets the one whose
  /// kind it supports.
  std::vector<Certificate> certificates = {};
  std::string client_ca_pem = {};
  /// CRLs of the authorities that issued the clients' certificates; empty: revocation is not
  /// checked. With CRLs, a client is refused if its certificate is revoked, or if its authority has
  /// no valid CRL here.
  std::string client_crl_pem = {};
  Clients clients = Clients::kNone;
  Version min_version = Version::kTls12;

  friend bool operator==(const ListenTls&, const ListenTls&) = default;
};

}  // namespace tidegate
