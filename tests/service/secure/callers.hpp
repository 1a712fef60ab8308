// SPDX-License-Identifier: Apache-2.0
// Who asks, at which listener, and what the rules of "Who may ask" say of it: written down once
// more, without any of the code under test.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "service/secure/doors.hpp"
#include "service/secure/tls_stream.hpp"

namespace tidegate::service {

inline constexpr std::string_view kAskToken = "token-that-may-ask";
inline constexpr std::string_view kAllToken = "token-that-may-all";
inline constexpr std::string_view kWrongToken = "token-of-nobody-at-all";

enum class Caller : std::uint8_t { kNobody, kWrong, kAsk, kAll, kCertificate };
inline constexpr std::array kCallers{Caller::kNobody, Caller::kWrong, Caller::kAsk, Caller::kAll,
                                     Caller::kCertificate};
/// Empty: he shows none.
[[nodiscard]] std::string_view TokenOf(Caller caller);
std::ostream& operator<<(std::ostream& out, Caller caller);

struct Place {
  bool loopback;
  bool tokens;
  bool certificates;  ///< TLS with optional ones.
  ListenSpec::Auth auth;

  /// Of all that there are.
  [[nodiscard]] static std::vector<Place> All();
  /// Of this listener; what belongs to nobody in particular is added to `config`.
  void Apply(Config& config, Door door) const;
  [[nodiscard]] std::unique_ptr<Stream> Connect(Service& service, Door door, Caller caller) const;
};
std::ostream& operator<<(std::ostream& out, const Place& place);

enum class Verdict : std::uint8_t { kServed, kUnknown, kMayNot };
/// The right that an operation needs: to ask, or to give quota back, debit or renew a lease.
enum class Asks : bool { kQuestion, kQuotaBack };
[[nodiscard]] Verdict Expected(const Place& place, Caller caller, Asks asks);

/// Both tokens.
[[nodiscard]] std::vector<TokenSpec> BothTokens();

}  // namespace tidegate::service
