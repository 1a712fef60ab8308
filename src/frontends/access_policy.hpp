// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/listen_spec.hpp"
#include "decision/snapshot.hpp"
#include "identity/client_address.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

/// The client certificates with rights by configuration (`access.certificates`). Immutable.
class Certificates {
 public:
  Certificates() = default;
  explicit Certificates(std::span<const CertificateSpec> specs)
      : specs_(specs.begin(), specs.end()) {}

  /// Returns true if no certificate is listed. Every certificate that TLS accepted then has all
  /// rights.
  [[nodiscard]] bool empty() const noexcept { return specs_.empty(); }
  /// Returns the first entry that names the peer's certificate, or nullptr if none does.
  [[nodiscard]] const CertificateSpec* Find(const net::Peer& peer) const noexcept;
  /// Returns the name of the peer for logs and the audit: the name of its entry, or else the
  /// subject of its certificate. REQUIRES: the peer is verified.
  [[nodiscard]] std::string NameOf(const net::Peer& peer) const {
    if (const CertificateSpec* const spec = Find(peer)) return spec->name;
    return peer.certificate == nullptr ? "(certificate)" : std::string(peer.certificate->Name());
  }

 private:
  std::vector<CertificateSpec> specs_;
};

/// The operations that a caller may use.
enum class Rights : std::uint8_t {
  kNone,    ///< The caller must authenticate first.
  kDecide,  ///< May request decisions and acquire leases, but not change the quota of others.
  kAll,
};

/// The secrets of callers. The time that Find takes reveals nothing about them. Immutable.
class Tokens {
 public:
  static constexpr std::size_t kLongest = 128;

  struct Token {
    std::string name;
    TokenSpec::May may = TokenSpec::May::kAll;
    std::array<char, kLongest> secret{};  ///< Padded with zeros.
  };

  Tokens() = default;
  explicit Tokens(std::span<const TokenSpec> specs);

  [[nodiscard]] bool empty() const noexcept { return tokens_.empty(); }
  /// Returns the token with this secret, or nullptr if there is none.
  [[nodiscard]] const Token* Find(std::string_view secret) const noexcept;
  /// Returns true if a token has this name. Names are not secret.
  [[nodiscard]] bool HasName(std::string_view name) const noexcept {
    return std::ranges::find(tokens_, name, &Token::name) != tokens_.end();
  }

 private:
  std::vector<Token> tokens_;
};

/// The access rules of one listener: which rights a caller has. No I/O.
class AccessPolicy {
 public:
  AccessPolicy() = default;
  explicit AccessPolicy(const ListenSpec& spec);

  /// Returns true if callers that are not local must authenticate, given the configured tokens. For
  /// a listener that has only local callers, returns true only if `auth` is kRequired.
  [[nodiscard]] bool Required(const Tokens& tokens) const noexcept;
  /// Returns true if this caller must authenticate, given the configured tokens.
  [[nodiscard]] bool Required(const net::Peer& peer, const Tokens& tokens) const noexcept {
    if (auth_ == ListenSpec::Auth::kByAddress && IsLocal(peer)) return false;
    return Required(tokens);
  }
  /// Returns true if the caller runs on this machine and the listener has a loopback address.
  /// Returns false for a client that a local proxy announces, even if the PROXY header does not
  /// contain the client's address (UNKNOWN, LOCAL).
  [[nodiscard]] bool IsLocal(const net::Peer& peer) const noexcept;
  /// Returns true if only programs on this machine can connect; proxies may be among them.
  [[nodiscard]] bool loopback() const noexcept { return loopback_; }
  /// Returns true if callers may present client certificates.
  [[nodiscard]] bool certificates() const noexcept { return certificates_; }
  /// Returns the rights of a caller that presented no token.
  [[nodiscard]] Rights ForPeer(const net::Peer& peer, const Tokens& tokens,
                               const Certificates& certificates) const noexcept;
  /// Returns the rights of a caller whose certificate TLS accepted; kNone if `certificates` does
  /// not list the certificate.
  [[nodiscard]] static Rights ForCertificate(const net::Peer& peer,
                                             const Certificates& certificates) noexcept;
  /// Returns the rights of a caller that presented a token; nullptr means an unknown token. An
  /// unknown token is rejected even on listeners that require no token, because the caller expects
  /// to be authenticated.
  [[nodiscard]] static Rights ForToken(const Tokens::Token* token) noexcept {
    return token == nullptr ? Rights::kNone : ForMay(token->may);
  }

 private:
  [[nodiscard]] static Rights ForMay(TokenSpec::May may) noexcept {
    return may == TokenSpec::May::kAll ? Rights::kAll : Rights::kDecide;
  }

  bool loopback_ = true;
  bool relays_ = false;        ///< The PROXY protocol announces clients on other machines.
  bool certificates_ = false;  ///< Callers may present client certificates.
  ListenSpec::Auth auth_ = ListenSpec::Auth::kByAddress;
};

/// The tokens, certificates and policies of all listeners. Part of a Snapshot.
struct AccessControl {
  Tokens tokens;
  Certificates certificates;
  std::array<AccessPolicy, kListeners> policies;  ///< Indexed by ListenerId.
  ClientAddressPolicy clients = {};               ///< The trusted proxies.

  [[nodiscard]] const AccessPolicy& of(ListenerId listener) const noexcept {
    return policies[static_cast<std::size_t>(listener)];
  }
};

}  // namespace tidegate
