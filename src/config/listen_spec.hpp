// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/tls_spec.hpp"

namespace tidegate {

/// The address of a listener, and which callers it serves.
struct ListenSpec {
  enum class Auth : std::uint8_t {
    /// Open on loopback addresses; on others required if there are tokens or certificates.
    kByAddress,
    kRequired,
    kOpen,
  };

  ListenSpec() = default;
  /// Converts an address alone into a specification, since the file may have just an address.
  ListenSpec(std::string where) : address(std::move(where)) {}  // NOLINT(*-explicit-*)
  ListenSpec(const char* where) : address(where) {}             // NOLINT(*-explicit-*)

  std::string address = {};  ///< `address:port` or `[address]:port`; empty: off.
  bool proxy_protocol = false;
  Auth auth = Auth::kByAddress;  ///< Not used by the gateway, whose clients need no rights.
  std::optional<ListenTls> tls = {};

  [[nodiscard]] bool off() const noexcept { return address.empty(); }
  friend bool operator==(const ListenSpec&, const ListenSpec&) = default;
};

/// A caller that authenticates by a token, and its rights.
struct TokenSpec {
  enum class May : std::uint8_t {
    kAsk,  ///< All operations except those that give quota back or change something.
    kAll,
  };
  std::string name = {};    ///< The name in logs: 1 to 64 of `A-Z a-z 0-9 . _ -`.
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
  std::string name = {};  ///< The name in logs: 1 to 64 of `A-Z a-z 0-9 . _ -`.
  Field field = Field::kSubject;
  std::string value = {};
  TokenSpec::May may = TokenSpec::May::kAll;

  friend bool operator==(const CertificateSpec&, const CertificateSpec&) = default;
};

}  // namespace tidegate
