// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decision/snapshot.hpp"
#include "frontends/certificates.hpp"
#include "net/http_exchange.hpp"
#include "rules/client_address.hpp"
#include "rules/listen_spec.hpp"

namespace tidegate {

/// The operations that a caller may use.
enum class Rights : std::uint8_t {
  kNone,    ///< The caller must authenticate first.
  kDecide,  ///< May decide and acquire leases, but not change what others have.
  kAll,
};

/// The secrets that callers authenticate with. The duration of Find reveals nothing about them, not
/// even their length. Immutable.
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
  /// True if a token has this name. Names are not secret.
  [[nodiscard]] bool HasName(std::string_view name) const noexcept;

 private:
  std::vector<Token> tokens_;
};

/// The access rules of one listener: which rights a caller has. No I/O.
class AccessPolicy {
 public:
  AccessPolicy() = default;
  explicit AccessPolicy(const ListenSpec& spec);

  /// True if callers that are not local must authenticate, given the configured tokens. False if
  /// the listener has only local callers, unless they must authenticate too.
  [[nodiscard]] bool Required(const Tokens& tokens) const noexcept;
  /// True if this caller must authenticate, given the configured tokens.
  [[nodiscard]] bool Required(const net::Peer& peer, const Tokens& tokens) const noexcept;
  /// True if the caller runs on this machine and the listener is for such callers. A client that a
  /// local proxy announces is not local, and neither is one that the proxy does not name (PROXY
  /// UNKNOWN, LOCAL): UNKNOWN may be anybody, and some proxies send LOCAL for clients without an
  /// address. Health checks, which are LOCAL too, need nothing but /healthz, /readyz or a TCP
  /// connection.
  [[nodiscard]] bool IsLocal(const net::Peer& peer) const noexcept;
  /// True if only programs on this machine can connect; proxies may be among them.
  [[nodiscard]] bool loopback() const noexcept { return loopback_; }
  /// True if callers may present client certificates.
  [[nodiscard]] bool certificates() const noexcept { return certificates_; }
  /// Rights of a caller that presented no token.
  [[nodiscard]] Rights ForPeer(const net::Peer& peer, const Tokens& tokens,
                               const Certificates& certificates) const noexcept;
  /// Rights of a caller whose certificate was accepted. A certificate that is not in the list, if
  /// there is one, is rejected like an unknown token.
  [[nodiscard]] static Rights ForCertificate(const net::Peer& peer,
                                             const Certificates& certificates) noexcept;
  /// Rights of a caller that presented a token; nullptr means the token is unknown. An unknown
  /// token is rejected even on listeners that need none: the caller expects to be authenticated.
  [[nodiscard]] static Rights ForToken(const Tokens::Token* token) noexcept;

 private:
  bool loopback_ = true;
  bool relays_ = false;        ///< The PROXY protocol announces clients that are elsewhere.
  bool certificates_ = false;  ///< Callers may present client certificates.
  ListenSpec::Auth auth_ = ListenSpec::Auth::kByAddress;
};

/// The tokens, the certificates and the access policy of each listener, under one configuration.
/// Part of a Snapshot.
struct AccessControl {
  Tokens tokens;
  Certificates certificates;
  std::array<AccessPolicy, kListeners> policies;  ///< By ListenerId.
  ClientAddressPolicy clients = {};               ///< The trusted proxies.

  [[nodiscard]] const AccessPolicy& of(ListenerId listener) const noexcept {
    return policies[static_cast<std::size_t>(listener)];
  }
};

/// True if the peer's address is in 127.0.0.0/8 or is ::1.
[[nodiscard]] bool IsLoopback(const net::Peer& peer) noexcept;

}  // namespace tidegate
