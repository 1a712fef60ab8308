// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "rules/config_sections.hpp"

// What the files that read the gateway's part of a configuration share; only they, and those that
// judge the whole, include this.

namespace tidegate {

/// The word `off`, in the place of a map, a size or a number.
[[nodiscard]] bool IsOff(const ConfigValue& value);
/// The longest body; `off` is 0.
[[nodiscard]] std::optional<std::size_t> ReadBodyBytes(const ConfigValue& value);
/// `api.internal`, `api.internal:8443` or `[::1]:80`, in lower case: what a Host field may hold.
[[nodiscard]] std::optional<std::string> ReadHostPort(const ConfigValue& value);

enum class Direction : std::uint8_t { kRequest, kResponse, kDenial };
void ReadHeaderEdits(const ConfigValue& value, Direction direction, HeaderEdits& edits);
/// Reads the header fields that a `denial` adds: a map from name to value.
void ReadDenialHeaders(const ConfigValue& value, std::vector<HeaderEdits::Set>& headers);

void ReadHealth(const ConfigValue& value, UpstreamSpec& upstream);
void ReadEjection(const ConfigValue& value, UpstreamSpec& upstream);
void ReadRetries(const ConfigValue& value, UpstreamSpec& upstream);
void ReadUpstreamTls(const ConfigValue& value, UpstreamSpec& upstream);

/// What no section of the gateway's can see by itself.
void CheckGateway(const ConfigDraft& draft, ReadContext& context);
/// As WarnAbout: what is sound, but probably not meant.
void WarnAboutGateway(const Config& config, const ConfigPlaces& places, ReadContext& context);

void AppendHeaderEditKeys(std::vector<SectionKeys>& sections);
void AppendRouteKeys(std::vector<SectionKeys>& sections);
void AppendUpstreamKeys(std::vector<SectionKeys>& sections);
void AppendUpstreamCareKeys(std::vector<SectionKeys>& sections);
void AppendUpstreamTlsKeys(std::vector<SectionKeys>& sections);

/// Readers for tables of keys: a member and its range.
template <auto Member, std::int64_t Min, std::int64_t Max, class Out>
void ReadNumber(const ConfigValue& value, Out& out) {
  using Number = std::remove_reference_t<decltype(out.*Member)>;
  if (const auto number = value.Integer(Min, Max)) out.*Member = static_cast<Number>(*number);
}

template <auto Member, std::int64_t MinMs, std::int64_t MaxMs, class Out>
void ReadMillis(const ConfigValue& value, Out& out) {
  using std::chrono::milliseconds;
  Put(out.*Member, value.Duration(milliseconds{MinMs}, milliseconds{MaxMs}));
}

inline constexpr std::int64_t kSecondMs = 1'000;
inline constexpr std::int64_t kMinuteMs = 60 * kSecondMs;
inline constexpr std::int64_t kHourMs = 60 * kMinuteMs;

}  // namespace tidegate
