// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/charge.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// The memory store's name for a key. Two keys have the same fingerprint with a probability of
/// 2^-128, and no client can find two such keys: the secret is drawn at random when the store
/// starts.
struct Fingerprint {
  std::uint64_t low = 0;  ///< Never 0 for a key: 0 marks an empty place.
  std::uint64_t high = 0;

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

class Fingerprinter {
 public:
  Fingerprinter();  ///< Draws a new secret.

  /// Returns the fingerprint of a key: the same identity under another rule or algorithm is another
  /// key.
  [[nodiscard]] Fingerprint Key(Algorithm algorithm, std::string_view rule,
                                std::string_view identity) const noexcept;
  /// Returns the fingerprint of a key in Redis, where a slot tag other than the identity is a part
  /// of the key. For a charge without such a tag, that is `key` itself.
  [[nodiscard]] Fingerprint WithSlotTag(const Fingerprint& key,
                                        const Charge& charge) const noexcept {
    return charge.tagged() ? Tagged(key, charge.slot_tag) : key;
  }
  /// Returns the fingerprint of the bucket that a rule's keys share when there is no room for more.
  /// Other quotas of the rule have other buckets, and so do shadow and enforcing charges.
  [[nodiscard]] Fingerprint Overflow(const Quota& quota, Mode mode,
                                     std::string_view rule) const noexcept;
  /// Returns the fingerprint of a refund's or a lease's id; it differs from key to key.
  [[nodiscard]] Fingerprint Id(const Fingerprint& key, std::string_view id) const noexcept;

 private:
  /// The role of a hashed text. It decides where in the secret the role's own secret begins, so
  /// that equal texts in different roles have unrelated hashes.
  enum class Role : std::uint8_t { kIdentity, kRule, kId = kRule + kAlgorithms, kShape, kSlotTag };
  static constexpr std::size_t kSecretOfRole = 184;

  [[nodiscard]] Fingerprint Hash(std::string_view text, Role role) const noexcept;
  [[nodiscard]] Fingerprint Tagged(const Fingerprint& key, std::string_view tag) const noexcept;
  [[nodiscard]] Fingerprint Rule(Algorithm algorithm, std::string_view rule) const noexcept;

  alignas(64) std::array<unsigned char, 256> secret_;
};

}  // namespace tidegate
