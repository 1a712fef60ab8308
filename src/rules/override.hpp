// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rules/limit_text.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// The key that an override is about.
struct OverrideKey {
  std::string rule;
  std::string identity;  ///< As rules/identity.hpp writes it.
  friend bool operator==(const OverrideKey&, const OverrideKey&) = default;
};

/// What an operator decided about one key, beside the configuration: it is refused, it passes
/// uncounted, or it has a quota of its own.
struct Override {
  enum class Kind : std::uint8_t { kBan, kAllow, kQuota };

  Kind kind = Kind::kBan;
  std::string rule;
  std::string identity;  ///< As rules/identity.hpp writes it.
  /// kQuota: that of the rule when it was given. A rule that counts otherwise by now ignores it.
  Algorithm algorithm = Algorithm::kTokenBucket;
  LimitText limit;         ///< kQuota.
  std::int64_t burst = 0;  ///< kQuota; 0: as the limit has it.
  std::string reason;      ///< For people.
  std::string by;          ///< Who gave it.

  /// What a store knows it by: no two keys share one. Neither part holds a space.
  [[nodiscard]] static std::string Field(std::string_view rule, std::string_view identity);
  /// Returns the key that Field() made `field` from; empty if `field` is not of that form.
  [[nodiscard]] static std::optional<OverrideKey> ParseField(std::string_view field);
  /// JSON that people can read.
  [[nodiscard]] std::string Text() const;
  /// Nothing where `text` is not one of these.
  [[nodiscard]] static std::optional<Override> Parse(std::string_view text);
  /// Of kQuota. An Error where no such quota can be.
  [[nodiscard]] Result<Quota> MakeQuota() const;

  friend bool operator==(const Override&, const Override&) = default;
};
inline constexpr int kOverrideKinds = 3;

/// `ban`, `allow`, `quota`.
[[nodiscard]] std::string_view Name(Override::Kind kind) noexcept;

}  // namespace tidegate
