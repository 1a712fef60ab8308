// SPDX-License-Identifier: Apache-2.0
#include "rules/source.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "core/refuse.hpp"
#include "rules/nearest.hpp"
#include "rules/ticked.hpp"

namespace tidegate {
namespace {

/// In the order of Source::Kind.
constexpr std::array<std::string_view, 10> kNames = {
    "client_ip", "header", "cookie", "query", "path", "route", "method", "host", "jwt", "const"};
constexpr std::size_t kMaxName = 128;
constexpr std::size_t kMaxAlternatives = 8;

/// What people call a source elsewhere.
struct Synonym {
  std::string_view word;
  std::string_view source;
};
constexpr std::array<Synonym, 14> kSynonyms = {{{"ip", "client_ip"},
                                                {"addr", "client_ip"},
                                                {"address", "client_ip"},
                                                {"remote_addr", "client_ip"},
                                                {"remote_address", "client_ip"},
                                                {"ip_address", "client_ip"},
                                                {"global", "const"},
                                                {"all", "const"},
                                                {"none", "const"},
                                                {"uri", "path"},
                                                {"url", "path"},
                                                {"claim", "jwt:sub"},
                                                {"user", "jwt:sub"},
                                                {"api_key", "header:x-api-key"}}};

bool HasName(Source::Kind kind) noexcept {
  return kind == Source::Kind::kHeader || kind == Source::Kind::kCookie ||
         kind == Source::Kind::kQuery || kind == Source::Kind::kJwt;
}

bool IsAlphaNumeric(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// A name becomes the tag of a key, so nothing that shapes keys may stand in it: `&`, `=`, `%`, `~`
/// and braces join and encode there, `|` and `,` divide sources here.
bool MayStandInName(Source::Kind kind, char c) noexcept {
  if (IsAlphaNumeric(c)) return true;
  if (kind == Source::Kind::kHeader || kind == Source::Kind::kCookie) {
    return std::string_view{"!#$'*+-.^_`"}.find(c) != std::string_view::npos;
  }
  return std::string_view{"!$'()*+-./:;?@[]_^`"}.find(c) != std::string_view::npos;
}

std::string UnknownSource(std::string_view kind) {
  std::string message = Ticked(kind) + " is not a source";
  const auto* const synonym = std::find_if(kSynonyms.begin(), kSynonyms.end(),
                                           [&](const Synonym& s) { return s.word == kind; });
  if (synonym != kSynonyms.end()) {
    return message + "; did you mean " + Ticked(synonym->source) + "?";
  }
  if (const auto nearest = Nearest(kind, kNames)) {
    return message + "; did you mean " + Ticked(*nearest) + "?";
  }
  if (kind.find('-') != std::string_view::npos) {
    return message + "; did you mean " + Ticked("header:" + std::string{kind}) + "?";
  }
  return message + ": choose one of client_ip, header:NAME, cookie:NAME, query:NAME, path, " +
         "route, method, host, jwt:CLAIM or const";
}

Result<std::string> CheckedName(Source::Kind kind, std::string_view name) {
  const std::string label{kNames[static_cast<std::size_t>(kind)]};
  if (name.size() > kMaxName) {
    return Refuse(ErrorCode::kBadCharge,
                  "the name of a " + label + " source has at most 128 characters");
  }
  for (const char c : name) {
    if (MayStandInName(kind, c)) continue;
    const bool printable = c > ' ' && c < 0x7f;
    return Refuse(
        ErrorCode::kBadCharge,
        printable ? Ticked({&c, 1}) + " cannot stand in the name of a " + label + " source"
                  : "the name of a " + label + " source holds a space or an unprintable character");
  }
  std::string checked{name};
  if (kind == Source::Kind::kHeader) {
    std::transform(checked.begin(), checked.end(), checked.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
  }
  return checked;
}

std::string_view Trimmed(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Whether `source` may stand behind those before it; `const` is always there, so nothing behind it
/// would ever count.
std::optional<std::string> WhyNotNext(const Per::Part& before, const Source& source) {
  if (std::find(before.begin(), before.end(), source) != before.end()) {
    return Ticked(source.Text()) + " stands here twice";
  }
  if (!before.empty() && before.back().kind == Source::Kind::kConst) {
    return Ticked(source.Text()) + " never counts: `const` before it is always present";
  }
  if (before.size() == kMaxAlternatives) return "more than 8 alternatives";
  return std::nullopt;
}

}  // namespace

Result<Source> Source::Parse(std::string_view text) {
  const auto colon = text.find(':');
  const std::string_view label = text.substr(0, colon);
  const auto* const found = std::find(kNames.begin(), kNames.end(), label);
  if (found == kNames.end()) return Refuse(ErrorCode::kBadCharge, UnknownSource(label));
  Source source;
  source.kind = static_cast<Kind>(found - kNames.begin());
  const bool named = colon != std::string_view::npos;
  if (!HasName(source.kind)) {
    if (named)
      return Refuse(ErrorCode::kBadCharge,
                    Ticked(label) + " has no name: write it without the colon");
    return source;
  }
  const std::string_view name = named ? text.substr(colon + 1) : std::string_view{};
  if (name.empty()) {
    const std::string example = source.kind == Kind::kHeader   ? "header:x-api-key"
                                : source.kind == Kind::kCookie ? "cookie:session"
                                : source.kind == Kind::kQuery  ? "query:api_key"
                                                               : "jwt:sub";
    return Refuse(ErrorCode::kBadCharge, Ticked(label) + " needs a name, as in " + Ticked(example));
  }
  auto checked = CheckedName(source.kind, name);
  if (!checked) return std::unexpected(std::move(checked.error()));
  source.name = *std::move(checked);
  return source;
}

std::string Source::Text() const {
  std::string text{kNames[static_cast<std::size_t>(kind)]};
  if (!name.empty()) text += ":" + name;
  return text;
}

bool Source::IsSecret() const noexcept { return HasName(kind); }

Result<Per::Part> Per::ParsePart(std::string_view text) {
  Part part;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t bar = std::min(text.find('|', from), text.size());
    const std::string_view alternative = Trimmed(text.substr(from, bar - from));
    from = bar + 1;
    if (alternative.empty()) {
      return Refuse(ErrorCode::kBadCharge,
                    text.empty() ? "names nothing to count by; write `client_ip` for each address "
                                   "or `const` for all together"
                                 : "has an empty alternative beside a `|`");
    }
    auto source = Source::Parse(alternative);
    if (!source) return std::unexpected(std::move(source.error()));
    if (auto why = WhyNotNext(part, *source)) return Refuse(ErrorCode::kBadCharge, *std::move(why));
    part.push_back(*std::move(source));
  }
  return part;
}

std::string Per::Text() const {
  std::string text;
  for (const Part& part : parts) {
    if (!text.empty()) text += ", ";
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (i > 0) text += " | ";
      text += part[i].Text();
    }
  }
  return text;
}

}  // namespace tidegate
