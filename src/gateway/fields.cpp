// SPDX-License-Identifier: Apache-2.0
#include "gateway/fields.hpp"

#include <algorithm>

namespace tidegate {
namespace {

constexpr char Fold(char c) noexcept {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c + ('a' - 'A'));
  return c == '_' ? '-' : c;
}

bool Is(std::string_view name, std::string_view folded) noexcept {
  if (name.size() != folded.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (Fold(name[i]) != folded[i]) return false;
  }
  return true;
}

struct Known {
  std::string_view name;
  FieldKind kind;
};
constexpr std::array<Known, 23> kKnown = {{
    {"connection", FieldKind::kHopByHop},
    {"keep-alive", FieldKind::kHopByHop},
    {"proxy-connection", FieldKind::kHopByHop},
    {"upgrade", FieldKind::kHopByHop},
    {"http2-settings", FieldKind::kHopByHop},
    // Programs in the manner of CGI take it for HTTP_PROXY, their own proxy.
    {"proxy", FieldKind::kHopByHop},
    {"transfer-encoding", FieldKind::kFraming},
    {"content-length", FieldKind::kFraming},
    {"te", FieldKind::kTe},
    {"trailer", FieldKind::kTrailer},
    {"host", FieldKind::kHost},
    {"expect", FieldKind::kExpect},
    {"forwarded", FieldKind::kForwarded},
    {"x-real-ip", FieldKind::kForwarded},
    {"x-client-ip", FieldKind::kForwarded},
    {"true-client-ip", FieldKind::kForwarded},
    {"x-original-forwarded-for", FieldKind::kForwarded},
    {"x-forwarded-for", FieldKind::kXForwardedFor},
    {"x-forwarded-proto", FieldKind::kXForwardedProto},
    {"x-forwarded-host", FieldKind::kXForwardedHost},
    {"x-request-id", FieldKind::kRequestId},
    {"date", FieldKind::kDate},
    {"via", FieldKind::kEndToEnd},
}};
constexpr std::string_view kForwardedPrefix = "x-forwarded";

/// Which lengths and first letters are of interest at all: most fields are neither.
consteval std::array<std::uint32_t, 32> LengthsByLetter() {
  std::array<std::uint32_t, 32> lengths{};
  for (const Known& known : kKnown) {
    lengths[static_cast<unsigned>(known.name[0]) & 31u] |= 1u << known.name.size();
  }
  return lengths;
}
constexpr auto kLengths = LengthsByLetter();

}  // namespace

FieldKind KindOf(std::string_view name) noexcept {
  const unsigned letter = static_cast<unsigned char>(name[0]) & 31u;
  if (letter == ('x' & 31u) && name.size() >= kForwardedPrefix.size() &&
      Is(name.substr(0, kForwardedPrefix.size()), kForwardedPrefix)) {
    for (const Known& known : kKnown) {
      if (Is(name, known.name)) return known.kind;
    }
    return FieldKind::kForwarded;
  }
  if (name.size() >= 32 || (kLengths[letter] & 1u << name.size()) == 0) {
    return FieldKind::kEndToEnd;
  }
  for (const Known& known : kKnown) {
    if (Is(name, known.name)) return known.kind;
  }
  return FieldKind::kEndToEnd;
}

bool Edited(const HeaderEdits& edits, std::string_view name) noexcept {
  return std::ranges::any_of(edits.remove, [&](const auto& own) { return SameName(own, name); }) ||
         std::ranges::any_of(edits.set, [&](const auto& own) { return SameName(own.name, name); });
}

void WriteTrailers(net::OutBuffer& out, std::span<const net::HttpField> trailers,
                   const HeaderEdits& edits) {
  for (const net::HttpField& field : trailers) {
    if (KindOf(field.name) != FieldKind::kEndToEnd || Edited(edits, field.name)) continue;
    // Quotas are told in the head, where they stand beside ours, or not at all.
    if (Is(field.name.substr(0, 9), "ratelimit")) continue;
    out << field.name << ": " << field.value << "\r\n";
  }
}

bool SameName(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto lower = [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    };
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

Nominated::Nominated(std::span<const net::HttpField> fields) noexcept {
  for (const net::HttpField& field : fields) {
    if (field.name.size() != 10 || !SameName(field.name, "connection")) continue;
    EachElement(field.value, [this](std::string_view name) {
      // Those concern this connection anyway.
      if (SameName(name, "close") || SameName(name, "keep-alive") || SameName(name, "upgrade")) {
        return true;
      }
      too_many_ = count_ == names_.size();
      if (!too_many_) names_[count_++] = name;
      return !too_many_;
    });
  }
}

bool Nominated::Has(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (SameName(names_[i], name)) return true;
  }
  return false;
}

}  // namespace tidegate
