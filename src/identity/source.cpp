// SPDX-License-Identifier: Apache-2.0
#include "identity/source.hpp"

#include <algorithm>
#include <array>
#include <expected>
#include <optional>

#include "base/ascii.hpp"
#include "base/failure.hpp"
#include "base/message_text.hpp"

namespace tidegate {
namespace {

/// The names, in the order of Source::Kind.
constexpr std::array<std::string_view, 10> kNames = {
    "client_ip", "header", "cookie", "query", "path", "route", "method", "host", "jwt", "const"};
constexpr std::size_t kMaxName = 128;
constexpr std::size_t kMaxAlternatives = 8;

/// The names of a source that people use elsewhere.
struct Synonyms {
  std::string_view source;
  std::string_view words;  ///< Each word has a space on both sides.
};
constexpr std::array<Synonyms, 5> kSynonyms = {
    {{"client_ip", " ip addr address remote_addr remote_address ip_address "},
     {"const", " global all none "},
     {"path", " uri url "},
     {"jwt:sub", " claim user "},
     {"header:x-api-key", " api_key "}}};

bool HasName(Source::Kind kind) noexcept {
  return kind == Source::Kind::kHeader || kind == Source::Kind::kCookie ||
         kind == Source::Kind::kQuery || kind == Source::Kind::kJwt;
}

/// Returns true if `c` may be part of a name. `&`, `=`, `%`, `~` and braces have a meaning in a
/// key's tag, `|` and `,` in a list of sources.
bool MayStandInName(Source::Kind kind, char c) noexcept {
  if (IsAlphanumeric(c)) return true;
  if (kind == Source::Kind::kHeader || kind == Source::Kind::kCookie) {
    return std::string_view{"!#$'*+-.^_`"}.contains(c);
  }
  return std::string_view{"!$'()*+-./:;?@[]_^`"}.contains(c);
}

std::string UnknownSource(std::string_view kind) {
  std::string message = Backticked(kind) + " is not a source";
  const std::string word = " " + std::string{kind} + " ";
  for (const auto& [source, words] : kSynonyms) {
    if (words.contains(word)) return message + "; did you mean " + Backticked(source) + "?";
  }
  if (const auto nearest = Nearest(kind, kNames)) {
    return message + "; did you mean " + Backticked(*nearest) + "?";
  }
  if (kind.contains('-')) {
    return message + "; did you mean " + Backticked("header:" + std::string{kind}) + "?";
  }
  return message + ": choose one of client_ip, header:NAME, cookie:NAME, query:NAME, path, " +
         "route, method, host, jwt:CLAIM or const";
}

Result<std::string> CheckedName(Source::Kind kind, std::string_view name) {
  const std::string label{Name(kind)};
  if (name.size() > kMaxName) {
    return Failure(ErrorCode::kBadCharge,
                   "the name of a " + label + " source has at most 128 characters");
  }
  for (const char c : name) {
    if (MayStandInName(kind, c)) continue;
    const bool printable = c > ' ' && c < 0x7f;
    return Failure(
        ErrorCode::kBadCharge,
        printable ? Backticked({&c, 1}) + " is not allowed in the name of a " + label + " source"
                  : "the name of a " + label + " source holds a space or an unprintable character");
  }
  return kind == Source::Kind::kHeader ? Lowered(name) : std::string{name};
}

/// Returns why `source` must not follow the alternatives `before`; nothing if it may. `const` is
/// always present, so a source after it would never be used.
std::optional<std::string> WhyNotNext(const Per::Part& before, const Source& source) {
  if (std::ranges::find(before, source) != before.end()) {
    return Backticked(source.Text()) + " is listed twice";
  }
  if (!before.empty() && before.back().kind == Source::Kind::kConst) {
    return Backticked(source.Text()) + " never counts: `const` before it is always present";
  }
  if (before.size() == kMaxAlternatives) return "more than 8 alternatives";
  return std::nullopt;
}

}  // namespace

std::string_view Name(Source::Kind kind) noexcept { return kNames[static_cast<std::size_t>(kind)]; }

Result<Source> Source::Parse(std::string_view text) {
  const auto colon = text.find(':');
  const std::string_view label = text.substr(0, colon);
  const auto* const found = std::ranges::find(kNames, label);
  if (found == kNames.end()) return Failure(ErrorCode::kBadCharge, UnknownSource(label));
  Source source;
  source.kind = static_cast<Kind>(found - kNames.begin());
  const bool named = colon != std::string_view::npos;
  if (!HasName(source.kind)) {
    if (named)
      return Failure(ErrorCode::kBadCharge,
                     Backticked(label) + " has no name: write it without the colon");
    return source;
  }
  const std::string_view name = named ? text.substr(colon + 1) : std::string_view{};
  if (name.empty()) {
    const std::string example = source.kind == Kind::kHeader   ? "header:x-api-key"
                                : source.kind == Kind::kCookie ? "cookie:session"
                                : source.kind == Kind::kQuery  ? "query:api_key"
                                                               : "jwt:sub";
    return Failure(ErrorCode::kBadCharge,
                   Backticked(label) + " needs a name, as in " + Backticked(example));
  }
  auto checked = CheckedName(source.kind, name);
  if (!checked) return std::unexpected(std::move(checked.error()));
  source.name = *std::move(checked);
  return source;
}

std::string Source::Text() const {
  std::string text{Name(kind)};
  if (!name.empty()) text += ":" + name;
  return text;
}

bool Source::IsSecret() const noexcept { return HasName(kind); }

Result<Per::Part> Per::ParsePart(std::string_view text) {
  Part part;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t bar = std::min(text.find('|', from), text.size());
    const std::string_view alternative = Trim(text.substr(from, bar - from));
    from = bar + 1;
    if (alternative.empty()) {
      return Failure(ErrorCode::kBadCharge,
                     text.empty() ? "names nothing to count by; write `client_ip` for "
                                    "each address or `const` for all together"
                                  : "has an empty alternative beside a `|`");
    }
    auto source = Source::Parse(alternative);
    if (!source) return std::unexpected(std::move(source.error()));
    if (auto why = WhyNotNext(part, *source))
      return Failure(ErrorCode::kBadCharge, *std::move(why));
    part.push_back(*std::move(source));
  }
  return part;
}

std::string Per::Text() const {
  return Joined(parts, ", ", [](const Part& part) { return Joined(part, " | ", &Source::Text); });
}

}  // namespace tidegate
