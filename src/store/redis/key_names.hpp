// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "store/redis/slot.hpp"
#include "tidegate/charge.hpp"

namespace tidegate::redis {

/// What Redis knows things by:
///
///     tg:tb:per-key:{client_ip=203.0.113.7}           a key; the identity is the hash tag
///     tg:rf:tb:per-key:{client_ip=203.0.113.7}:r-17   a refund that was made on it
///
/// Rules, identities and ids that are long, or hold anything that could shape a key, appear as
/// `~` and 128 bits of their SHA-256.
class KeyNames {
 public:
  explicit KeyNames(std::string prefix) : prefix_(std::move(prefix)) {}

  void AppendKey(std::string& out, const Charge& charge) const;
  void AppendRefund(std::string& out, const Charge& charge, std::string_view id) const;
  /// Appends the part of a key's name that says who is counted by which rule, without algorithm:
  /// `per-key:client_ip=203.0.113.7`. Cached denials are invalidated by it, because an override
  /// names a rule and an identity, and not how the rule counts.
  static void AppendSubject(std::string& out, std::string_view rule, std::string_view identity);
  /// Appends the subject of a key that AppendKey made. False, and nothing is appended: `key` is not
  /// such a name.
  [[nodiscard]] bool AppendSubjectOf(std::string& out, std::string_view key) const;
  /// Of a lease, as the member of its sorted set.
  static void AppendLease(std::string& out, std::string_view lease);

  /// Of all keys of that identity.
  [[nodiscard]] static Slot SlotOf(std::string_view identity);

  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }
  /// Where refunds and resets are told.
  [[nodiscard]] std::string Channel() const { return prefix_ + "invalidate"; }
  /// What the nodes of a fleet know of each other; in one slot.
  [[nodiscard]] static Slot FleetSlot() { return SlotOfTag("fleet"); }
  [[nodiscard]] std::string Nodes() const { return prefix_ + "nodes:{fleet}"; }
  [[nodiscard]] std::string Overrides() const { return prefix_ + "overrides:{fleet}"; }
  [[nodiscard]] std::string Audit() const { return prefix_ + "audit:{fleet}"; }
  [[nodiscard]] std::string Secret() const { return prefix_ + "hmac-key:{fleet}"; }

 private:
  std::string prefix_;
};

}  // namespace tidegate::redis
