// SPDX-License-Identifier: Apache-2.0
#include "gateway/fields.hpp"

#include <algorithm>

namespace tidegate {
namespace {

constexpr char Fold(char c) noexcept { return c == '_' ? '-' : Lower(c); }

bool Is(std::string_view name, std::string_view folded) noexcept {
  return std::ranges::equal(name, folded, {}, Fold);
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
    // CGI programs see this field as HTTP_PROXY, which sets the proxy of their own requests.
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

/// A perfect hash of the known names: no two have the same length, first letter and last letter
/// after multiplication by these factors, so a name is compared with one candidate at most.
constexpr std::size_t kSlots = 128;
constexpr std::size_t kLengthFactor = 6;
constexpr std::size_t kFirstFactor = 10;
constexpr std::uint8_t kNoCandidate = 255;
constexpr std::size_t SlotOf(std::string_view name) noexcept {
  // The low five bits are the same for both cases of a letter.
  const auto letter = [](char c) { return static_cast<std::size_t>(c) & 31u; };
  return (name.size() * kLengthFactor + letter(name.front()) * kFirstFactor + letter(name.back())) %
         kSlots;
}
consteval std::array<std::uint8_t, kSlots> Candidates() {
  std::array<std::uint8_t, kSlots> candidates{};
  candidates.fill(kNoCandidate);
  for (std::size_t i = 0; i < kKnown.size(); ++i) {
    std::uint8_t& candidate = candidates[SlotOf(kKnown[i].name)];
    if (candidate != kNoCandidate) throw "two names in one slot: choose other factors";
    candidate = static_cast<std::uint8_t>(i);
  }
  return candidates;
}
constexpr auto kCandidates = Candidates();

bool HasUnderscore(std::string_view name) noexcept {
  return name.find('_') != std::string_view::npos;
}

/// Fields that are forwarded even if Connection names them: without them the upstream would serve
/// another response or user.
constexpr std::array<std::string_view, 20> kEndToEndNames = {
    "authorization", "cache-control",  "cookie",    "date",        "forwarded",
    "from",          "host",           "origin",    "pragma",      "range",
    "referer",       "user-agent",     "x-api-key", "api-key",     "x-auth-token",
    "x-csrf-token",  "x-access-token", "x-user-id", "x-tenant-id", "idempotency-key"};
constexpr std::array<std::string_view, 4> kEndToEndPrefixes = {"accept", "content-", "if-",
                                                               "x-forwarded"};

bool IsEndToEnd(std::string_view name) noexcept {
  return std::ranges::any_of(kEndToEndNames,
                             [&](auto known) { return EqualsIgnoreCase(name, known); }) ||
         std::ranges::any_of(kEndToEndPrefixes, [&](auto prefix) {
           return EqualsIgnoreCase(name.substr(0, prefix.size()), prefix);
         });
}

bool MayBeTrailer(std::string_view name, const HeaderEdits& edits) noexcept {
  if (KindOf(name) != FieldKind::kEndToEnd || Edited(edits, name)) return false;
  // RateLimit fields may be in the head only, so those in trailers are dropped.
  return !Is(name.substr(0, 9), "ratelimit");
}

}  // namespace

FieldKind KindOf(std::string_view name) noexcept {
  const std::uint8_t candidate = kCandidates[SlotOf(name)];
  if (candidate != kNoCandidate && Is(name, kKnown[candidate].name)) return kKnown[candidate].kind;
  const bool forwarded = Fold(name[0]) == 'x' && name.size() >= kForwardedPrefix.size() &&
                         Is(name.substr(0, kForwardedPrefix.size()), kForwardedPrefix);
  return forwarded ? FieldKind::kForwarded : FieldKind::kEndToEnd;
}

bool Edited(const HeaderEdits& edits, std::string_view name) noexcept {
  return std::ranges::any_of(edits.remove,
                             [&](const auto& own) { return EqualsIgnoreCase(own, name); }) ||
         std::ranges::any_of(edits.set,
                             [&](const auto& own) { return EqualsIgnoreCase(own.name, name); });
}

bool RequestFields::Classify(const net::HttpHead& head, const Policy& policy) noexcept {
  const auto nominated = Nominated::By(head);
  for (std::size_t i = 0; i < head.field_count; ++i) {
    const std::string_view name = head.fields[i].name;
    FieldKind& kind = kinds_[i] = KindOf(name);
    switch (kind) {
      case FieldKind::kForwarded:
      case FieldKind::kXForwardedFor:
      case FieldKind::kXForwardedProto:
      case FieldKind::kXForwardedHost:
        // A trusted proxy writes these names with `-`, so a name with `_` comes from its client.
        if (!policy.trusted || HasUnderscore(name)) kind = FieldKind::kHopByHop;
        break;
      case FieldKind::kRequestId:
        if (!policy.trusted) kind = FieldKind::kHopByHop;
        break;
      default:
        // Some fields with `_` are dropped even if `underscores` is set: an upstream may mistake
        // them for a field that a rule reads.
        if (HasUnderscore(name) && (!policy.underscores || (policy.rules.ReadsSpelling(name) &&
                                                            !policy.rules.ReadsHeader(name)))) {
          kind = FieldKind::kHopByHop;
        }
        break;
    }
    // TE is not dropped here, although Connection must name TE: the gateway writes its own TE.
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
    case FieldKind::kExpect: return false;
    case FieldKind::kUpgrade: return head.upgrade;
    case FieldKind::kHost:  // The authority of an absolute-form target replaces Host.
      return head.fields[i].value == head.host;
    default: return true;
  }
}

void WriteTrailers(net::OutBuffer& out, std::span<const net::HttpField> trailers,
                   const HeaderEdits& edits, const RequestFields::Policy* policy) {
  for (const net::HttpField& field : trailers) {
    if (!MayBeTrailer(field.name, edits)) continue;
    if (policy != nullptr && !policy->underscores && HasUnderscore(field.name)) continue;
    if (policy != nullptr && policy->rules.ReadsSpelling(field.name)) continue;
    out << field.name << ": " << field.value << "\r\n";
  }
}

Nominated::Nominated(std::span<const net::HttpField> fields) noexcept {
  for (const net::HttpField& field : fields) {
    if (!EqualsIgnoreCase(field.name, "connection")) continue;
    net::http1::EachElement(field.value, [this](std::string_view name) {
      // These options are not names of fields.
      if (EqualsIgnoreCase(name, "close") || EqualsIgnoreCase(name, "keep-alive") ||
          EqualsIgnoreCase(name, "upgrade")) {
        return true;
      }
      too_many_ = count_ == names_.size();
      if (!too_many_) names_[count_++] = {name.data(), name.size()};
      return !too_many_;
    });
  }
}

bool Nominated::Find(std::string_view name) const noexcept {
  return std::any_of(names_.begin(), names_.begin() + count_, [name](const Name& own) {
    return EqualsIgnoreCase({own.data, own.size}, name);
  });
}

}  // namespace tidegate
