// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tidegate {

/// TLS of a listener. What it holds may change with a reload; whether there is TLS at all may not.
struct ListenTls {
  struct Certificate {
    std::string certificate_pem = {};  ///< With its chain.
    std::string key_pem = {};
    friend bool operator==(const Certificate&, const Certificate&) = default;
  };
  /// Whether clients show certificates, of an authority in `client_ca_pem`.
  enum class Clients : std::uint8_t { kNone, kOptional, kRequired };
  enum class Version : std::uint8_t { kTls12, kTls13 };

  /// At least one. A client gets the one for the name that it asks for, else the first.
  std::vector<Certificate> certificates = {};
  std::string client_ca_pem = {};
  std::string client_crl_pem = {};  ///< One or more CRLs; empty: revocation is not checked.
  Clients clients = Clients::kNone;
  Version min_version = Version::kTls12;

  friend bool operator==(const ListenTls&, const ListenTls&) = default;
};

/// Where a door listens, and to whom.
struct ListenSpec {
  enum class Auth : std::uint8_t {
    kByAddress,  ///< Open on loopback; else required, where there is something to know callers by.
    kRequired,
    kOpen,
  };

  ListenSpec() = default;
  /// So that an address alone is a specification, as it is in the file.
  ListenSpec(std::string where) : address(std::move(where)) {}  // NOLINT(*-explicit-*)
  ListenSpec(const char* where) : address(where) {}             // NOLINT(*-explicit-*)

  std::string address = {};  ///< `address:port` or `[address]:port`; empty: off.
  bool proxy_protocol = false;
  Auth auth = Auth::kByAddress;  ///< Not of the gateway, whose clients are everybody.
  std::optional<ListenTls> tls = {};

  [[nodiscard]] bool off() const noexcept { return address.empty(); }
  friend bool operator==(const ListenSpec&, const ListenSpec&) = default;
};

/// Who may ask, and what for.
struct TokenSpec {
  enum class May : std::uint8_t {
    kAsk,  ///< Whatever does not give quota back.
    kAll,
  };
  std::string name = {};    ///< For logs; 1 to 64 of `A-Z a-z 0-9 . _ -`.
  std::string secret = {};  ///< 16 to 128 printable characters without spaces.
  May may = May::kAll;

  friend bool operator==(const TokenSpec&, const TokenSpec&) = default;
};

/// A client certificate that has rights, named by one field of it.
struct CertificateSpec {
  enum class Field : std::uint8_t {
    kSubject,  ///< The subject as RFC 2253 writes it.
    kUri,      ///< A URI among the alternative names, such as a SPIFFE ID.
    kDns,      ///< A DNS name among the alternative names, in lower case.
  };
  std::string name = {};  ///< For logs; 1 to 64 of `A-Z a-z 0-9 . _ -`.
  Field field = Field::kSubject;
  std::string value = {};
  TokenSpec::May may = TokenSpec::May::kAll;

  friend bool operator==(const CertificateSpec&, const CertificateSpec&) = default;
};

}  // namespace tidegate
