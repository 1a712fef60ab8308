// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/charge.hpp"

namespace tidegate::redis {

/// The number of slots among which Redis Cluster divides the keys.
inline constexpr std::size_t kSlots = 16'384;
using Slot = std::uint16_t;

/// Returns the slot of keys with this hash tag: the text between the first `{` and the next `}`.
[[nodiscard]] Slot SlotOfTag(std::string_view tag) noexcept;

/// The names of keys in Redis:
///
///     tg:tb:per-key:{client_ip=203.0.113.7}                  a key; the identity is the hash tag
///     tg:rf:tb:per-key:{client_ip=203.0.113.7}:r-17          the id of a refund on that key
///     tg:tb:per-key:{acme}:client_ip=203.0.113.7             a key with the slot tag `acme`
///     tg:rf:tb:per-key:{acme}:{client_ip=203.0.113.7}:r-17   the id of a refund on that key
///
/// Rules, identities, slot tags and ids that are long, or hold anything that could shape a key,
/// appear as `~` and 128 bits of their SHA-256. None of them contains a brace and a rule contains
/// no colon, so no two names are equal: without a slot tag a key ends at the first `}`, and the
/// name of a refund's id has one pair of braces instead of two. Identities and ids may contain
/// colons, hence the braces around an identity that an id follows.
class KeyNames {
 public:
  explicit KeyNames(std::string prefix) : prefix_(std::move(prefix)) {}

  void AppendKey(std::string& out, const Charge& charge) const;
  void AppendRefund(std::string& out, const Charge& charge, std::string_view id) const;
  /// Appends the part of a key's name that says who is counted by which rule, without algorithm and
  /// slot tag: `per-key:client_ip=203.0.113.7`. Cached denials are invalidated by it, because an
  /// override names a rule and an identity only.
  static void AppendSubject(std::string& out, std::string_view rule, std::string_view identity);
  /// Appends the subject of a key that AppendKey made. Returns false and appends nothing if `key`
  /// is not such a name.
  [[nodiscard]] bool AppendSubjectOf(std::string& out, std::string_view key) const;
  /// Appends the member that stands for a lease in its sorted set.
  static void AppendLease(std::string& out, std::string_view lease);

  /// Returns the slot of a charge's key and of the ids of its refunds.
  [[nodiscard]] static Slot SlotOf(const Charge& charge);

  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }
  /// The channel on which refunds and resets are published.
  [[nodiscard]] std::string Channel() const { return prefix_ + "invalidate"; }
  /// The keys that all nodes of a fleet share; in one slot.
  [[nodiscard]] static Slot FleetSlot() { return SlotOfTag("fleet"); }
  [[nodiscard]] std::string Nodes() const { return prefix_ + "nodes:{fleet}"; }
  [[nodiscard]] std::string Overrides() const { return prefix_ + "overrides:{fleet}"; }
  [[nodiscard]] std::string Audit() const { return prefix_ + "audit:{fleet}"; }
  [[nodiscard]] std::string AuthFailures() const { return prefix_ + "auth-failures:{fleet}"; }
  [[nodiscard]] std::string AuditHistory() const { return prefix_ + "audit-history:{fleet}"; }
  [[nodiscard]] std::string Secret() const { return prefix_ + "hmac-key:{fleet}"; }

 private:
  std::string prefix_;
};

}  // namespace tidegate::redis
