// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "frontends/tokens.hpp"
#include "net/http_exchange.hpp"
#include "rules/listen_spec.hpp"

namespace tidegate {

/// What a caller may do at a door.
enum class Rights : std::uint8_t {
  kNone,  ///< Say who he is, first.
  kAsk,   ///< All but what gives quota back: to himself, or to others.
  kAll,
};

/// Who may do what at one listener. Pure.
class Admission {
 public:
  Admission() = default;
  explicit Admission(const ListenSpec& spec);

  /// Whether callers must say who they are, while these tokens are in force.
  [[nodiscard]] bool Required(const Tokens& tokens) const noexcept;
  /// Of a caller who shows no token.
  [[nodiscard]] Rights Of(const net::Peer& peer, const Tokens& tokens) const noexcept;
  /// Of a caller who shows one. A wrong one is worse than none, even where none is needed: somebody
  /// believes to be known.
  [[nodiscard]] static Rights Of(const Tokens::Token* token) noexcept;

 private:
  bool loopback_ = true;
  bool certificates_ = false;  ///< Callers may show some.
  ListenSpec::Auth auth_ = ListenSpec::Auth::kByAddress;
};

/// 127.0.0.0/8 or ::1: on this machine.
[[nodiscard]] bool IsLoopback(const net::Peer& peer) noexcept;

}  // namespace tidegate
