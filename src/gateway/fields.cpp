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
constexpr std::array<Known, 28> kKnown = {{
    {"connection", FieldKind::kHopByHop},
    {"keep-alive", FieldKind::kHopByHop},
    {"proxy-connection", FieldKind::kHopByHop},
    {"upgrade", FieldKind::kUpgrade},
    {"http2-settings", FieldKind::kHopByHop},
    // CGI programs take it for HTTP_PROXY, the proxy of their own requests.
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
    // Some frameworks (IIS rewriting, Symfony, Zend) serve this path instead of the request's.
    {"x-original-url", FieldKind::kForwarded},
    {"x-original-uri", FieldKind::kForwarded},
    {"x-original-host", FieldKind::kForwarded},
    {"x-original-method", FieldKind::kForwarded},
    {"x-rewrite-url", FieldKind::kForwarded},
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

bool HasUnderscore(std::string_view name) noexcept {
  return name.find('_') != std::string_view::npos;
}

/// Fields that Connection cannot turn into fields of one connection: dropping them would change
/// what the upstream serves, and to whom.
constexpr std::array<std::string_view, 20> kEndToEndNames = {
    "authorization", "cache-control",  "cookie",    "date",        "forwarded",
    "from",          "host",           "origin",    "pragma",      "range",
    "referer",       "user-agent",     "x-api-key", "api-key",     "x-auth-token",
    "x-csrf-token",  "x-access-token", "x-user-id", "x-tenant-id", "idempotency-key"};
constexpr std::array<std::string_view, 4> kEndToEndPrefixes = {"accept", "content-", "if-",
                                                               "x-forwarded"};

bool IsEndToEnd(std::string_view name) noexcept {
  return std::ranges::any_of(kEndToEndNames, [&](auto known) { return SameName(name, known); }) ||
         std::ranges::any_of(kEndToEndPrefixes, [&](auto prefix) {
           return SameName(name.substr(0, prefix.size()), prefix);
         });
}

bool MayBeTrailer(std::string_view name, const HeaderEdits& edits) noexcept {
  if (KindOf(name) != FieldKind::kEndToEnd || Edited(edits, name)) return false;
  // The head announces quotas, where they stand beside ours.
  return !Is(name.substr(0, 9), "ratelimit");
}

void WriteTrailer(net::OutBuffer& out, const net::HttpField& field) {
  out << field.name << ": " << field.value << "\r\n";
}

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

bool RequestFields::Classify(const net::HttpHead& head, const Policy& policy) noexcept {
  const Nominated nominated(head.all());
  for (std::size_t i = 0; i < head.field_count; ++i) {
    const std::string_view name = head.fields[i].name;
    FieldKind& kind = kinds_[i] = KindOf(name);
    switch (kind) {
      case FieldKind::kForwarded:
      case FieldKind::kXForwardedFor:
      case FieldKind::kXForwardedProto:
      case FieldKind::kXForwardedHost:
        // A trusted proxy writes these names with `-`. One with `_` comes from its client.
        if (!policy.trusted || HasUnderscore(name)) kind = FieldKind::kHopByHop;
        break;
      case FieldKind::kRequestId:
        if (!policy.trusted) kind = FieldKind::kHopByHop;
        break;
      default:
        // With `underscores` too: an upstream may take it for a field that a rule reads.
        if (HasUnderscore(name) && (!policy.underscores || (policy.rules.ReadsSpelling(name) &&
                                                            !policy.rules.ReadsHeader(name)))) {
          kind = FieldKind::kHopByHop;
        }
        break;
    }
    // TE is rightly named in Connection. What it says is written anew.
    if (!nominated.empty() && kind != FieldKind::kTe && nominated.Has(name) && !IsEndToEnd(name) &&
        !policy.rules.ReadsHeader(name)) {
      kind = FieldKind::kHopByHop;
    }
  }
  return !nominated.too_many();
}

bool RequestFields::IsVisible(std::size_t i, const net::HttpHead& head) const noexcept {
  switch (kinds_[i]) {
    case FieldKind::kHopByHop:
    case FieldKind::kTe:
    case FieldKind::kExpect:
      return false;
    case FieldKind::kUpgrade:
      return head.upgrade;
    case FieldKind::kHost:  // The authority of an absolute-form target replaces it.
      return head.fields[i].value == head.host;
    default:
      return true;
  }
}

void WriteResponseTrailers(net::OutBuffer& out, std::span<const net::HttpField> trailers,
                           const HeaderEdits& edits) {
  for (const net::HttpField& field : trailers) {
    if (MayBeTrailer(field.name, edits)) WriteTrailer(out, field);
  }
}

void WriteRequestTrailers(net::OutBuffer& out, std::span<const net::HttpField> trailers,
                          const HeaderEdits& edits, const RequestFields::Policy& policy) {
  for (const net::HttpField& field : trailers) {
    if (!MayBeTrailer(field.name, edits)) continue;
    if (!policy.underscores && HasUnderscore(field.name)) continue;
    if (policy.rules.ReadsSpelling(field.name)) continue;
    WriteTrailer(out, field);
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
