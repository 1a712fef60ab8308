// SPDX-License-Identifier: Apache-2.0
// Callers, listener configurations, and the rights that the documentation gives to them: a second
// implementation that shares no code with the tested one.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "service/secure/listeners.hpp"
#include "service/secure/tls_stream.hpp"

namespace tidegate::service {

inline constexpr std::string_view kAskToken = "token-that-may-ask";
inline constexpr std::string_view kAllToken = "token-that-may-all";
inline constexpr std::string_view kWrongToken = "token-that-is-unknown";

enum class Caller : std::uint8_t { kNone, kWrong, kAsk, kAll, kCertificate };
inline constexpr std::array kCallers{Caller::kNone, Caller::kWrong, Caller::kAsk, Caller::kAll,
                                     Caller::kCertificate};
/// Returns the token that the caller presents; empty: none.
[[nodiscard]] std::string_view TokenOf(Caller caller);
std::ostream& operator<<(std::ostream& out, Caller caller);

struct Place {
  bool loopback;
  bool tokens;
  bool certificates;  ///< TLS with optional client certificates.
  ListenSpec::Auth auth;

  /// Returns every combination.
  [[nodiscard]] static std::vector<Place> All();
  /// Applies the configuration to a listener; tokens are added to `config`.
  void Apply(Config& config, ListenerId listener) const;
  [[nodiscard]] std::unique_ptr<test::Stream> Connect(Service& service, ListenerId listener,
                                                      Caller caller) const;
};
std::ostream& operator<<(std::ostream& out, const Place& place);

enum class Outcome : std::uint8_t { kServed, kUnknown, kMayNot };
/// The right that an operation needs: to decide, or to give quota back, debit or renew a lease.
enum class Operation : bool { kDecide, kGiveBack };
[[nodiscard]] Outcome Expected(const Place& place, Caller caller, Operation operation);

/// Returns the tokens kAskToken (may decide) and kAllToken (has all rights).
[[nodiscard]] std::vector<TokenSpec> BothTokens();

}  // namespace tidegate::service
