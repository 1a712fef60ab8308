// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "decision/snapshot.hpp"
#include "frontends/tokens.hpp"
#include "net/http_exchange.hpp"
#include "rules/listen_spec.hpp"

namespace tidegate {

/// What a caller may do.
enum class Rights : std::uint8_t {
  kNone,    ///< The caller must authenticate first.
  kDecide,  ///< May ask and charge, but not refund, release or reset.
  kAll,
};

/// Who may do what at one listener. Pure.
class AccessPolicy {
 public:
  AccessPolicy() = default;
  explicit AccessPolicy(const ListenSpec& spec);

  /// Whether callers must authenticate, given these tokens.
  [[nodiscard]] bool Required(const Tokens& tokens) const noexcept;
  /// Rights of a caller that presented no token.
  [[nodiscard]] Rights ForPeer(const net::Peer& peer, const Tokens& tokens) const noexcept;
  /// Rights of a caller that presented a token; nullptr means the token is unknown. An unknown
  /// token is rejected even on listeners that need none: the caller expects to be authenticated.
  [[nodiscard]] static Rights ForToken(const Tokens::Token* token) noexcept;

 private:
  bool loopback_ = true;
  bool certificates_ = false;  ///< Callers may present client certificates.
  ListenSpec::Auth auth_ = ListenSpec::Auth::kByAddress;
};

/// Who may do what at each listener, under one configuration. Part of a Snapshot.
struct AccessControl {
  Tokens tokens;
  std::array<AccessPolicy, kListeners> policies;  ///< By ListenerId.

  [[nodiscard]] const AccessPolicy& of(ListenerId listener) const noexcept {
    return policies[static_cast<std::size_t>(listener)];
  }
};

/// 127.0.0.0/8 or ::1: on this machine.
[[nodiscard]] bool IsLoopback(const net::Peer& peer) noexcept;

}  // namespace tidegate
