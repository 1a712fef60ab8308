// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tidegate/charge.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// What the memory store knows a key by. Two keys share one with a probability
/// of 2^-128, and nobody outside the process can find two that do: the secret is
/// drawn at random when the store starts.
struct Fingerprint {
  std::uint64_t low = 0;  ///< Never 0 for a key: 0 marks an empty place.
  std::uint64_t high = 0;

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

class Fingerprinter {
 public:
  Fingerprinter();  ///< Draws a new secret.

  /// Of a key: the same identity under another rule or algorithm is another key.
  [[nodiscard]] Fingerprint Key(Algorithm algorithm, std::string_view rule,
                                std::string_view identity) const noexcept;
  /// Of a key in Redis, where a slot tag other than the identity is a part of the
  /// key. Returns `key` itself for a charge without one.
  [[nodiscard]] Fingerprint WithSlotTag(const Fingerprint& key,
                                        const Charge& charge) const noexcept {
    return charge.tagged() ? Tagged(key, charge.slot_tag) : key;
  }
  /// Of the bucket that a rule's keys share when there is no room for more. Other
  /// quotas of the rule do not mix with it, nor do shadows with what is enforced.
  [[nodiscard]] Fingerprint Overflow(const Quota& quota, Mode mode,
                                     std::string_view rule) const noexcept;
  /// Of a refund's or a lease's id: the same id on another key is another one.
  [[nodiscard]] Fingerprint Id(const Fingerprint& key, std::string_view id) const noexcept;

 private:
  /// What is hashed decides where in the secret its own secret begins, so that
  /// equal texts in different roles have nothing in common.
  enum class Role : std::uint8_t { kIdentity, kRule, kId = kRule + kAlgorithms, kShape, kSlotTag };
  static constexpr std::size_t kSecretOfRole = 184;

  [[nodiscard]] Fingerprint Hash(std::string_view text, Role role) const noexcept;
  [[nodiscard]] Fingerprint Tagged(const Fingerprint& key, std::string_view tag) const noexcept;
  [[nodiscard]] Fingerprint Rule(Algorithm algorithm, std::string_view rule) const noexcept;

  alignas(64) std::array<unsigned char, 256> secret_;
};

}  // namespace tidegate
