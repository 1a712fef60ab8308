// SPDX-License-Identifier: Apache-2.0
#include "identity/source_value.hpp"

#include <algorithm>
#include <array>
#include <expected>

#include "base/ascii.hpp"
#include "base/utf8.hpp"

namespace tidegate {
namespace {

std::unexpected<Error> Several(std::string_view kind, std::string_view name) {
  return std::unexpected(
      Error{ErrorCode::kBadCharge,
            "the " + std::string(kind) + " " + std::string(name) +
                " has several different values, but requests are counted by it: send it once"});
}

/// Returns credentials in the form by which they are counted: `Bearer  abc` and `bearer abc` are
/// the same, because the scheme has no case.
std::string_view CountedCredentials(std::string_view value, std::pmr::memory_resource& memory) {
  std::size_t space = 0;
  while (space < value.size() && SpaceAtBegin(value.substr(space)) == 0) {
    space += CharacterSize(value.substr(space));
  }
  if (space == value.size()) return value;
  const std::string_view scheme = value.substr(0, space);
  const std::string_view rest = TrimSpaces(value.substr(space));
  char* const out = static_cast<char*>(memory.allocate(value.size(), 1));
  char* end = std::ranges::transform(scheme, out, Lower).out;
  *end++ = ' ';
  end = std::ranges::copy(rest, end).out;
  return {out, static_cast<std::size_t>(end - out)};
}

std::string_view CountedHeader(std::string_view name, std::string_view value,
                               std::pmr::memory_resource& memory) {
  value = TrimSpaces(value);
  return name == "authorization" ? CountedCredentials(value, memory) : value;
}

Result<std::string_view> OneHeader(std::span<const HeaderField> headers, std::string_view name,
                                   std::pmr::memory_resource& memory) {
  std::string_view found;
  for (const HeaderField& field : headers) {
    if (!EqualsIgnoreCase(field.name, name)) continue;
    const std::string_view value = CountedHeader(name, field.value, memory);
    if (value.empty() || value == found) continue;
    if (!found.empty()) return Several("header", name);
    found = value;
  }
  return found;
}

/// Removes and returns a query's first character, decoded; `+` is a space. REQUIRES: not empty.
char TakeFromQuery(std::string_view& text) noexcept {
  const auto [c, encoded] = TakeDecoded(text);
  return c == '+' && !encoded ? ' ' : c;
}

/// Reads the bytes of a cookie's value as servers may decode them: without quotes; with `\"`, `\\`
/// and `\101` in quotes (Python); and percent-decoded (Express, PHP).
class CookieReader {
 public:
  explicit CookieReader(std::string_view value) noexcept : text_(TrimSpaces(value)) {
    quoted_ = text_.size() >= 2 && text_.front() == '"' && text_.back() == '"';
    if (quoted_) text_ = TrimSpaces(text_.substr(1, text_.size() - 2));
  }
  [[nodiscard]] bool done() const noexcept { return text_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
  /// REQUIRES: not done().
  char Next() noexcept {
    if (!quoted_ || text_[0] != '\\' || text_.size() < 2) return TakeDecoded(text_).c;
    const auto is_octal = [this](std::size_t i) { return text_[i] >= '0' && text_[i] <= '7'; };
    if (text_.size() >= 4 && text_[1] <= '3' && is_octal(1) && is_octal(2) && is_octal(3)) {
      const int value = (text_[1] - '0') * 64 + (text_[2] - '0') * 8 + (text_[3] - '0');
      text_.remove_prefix(4);
      return static_cast<char>(value);
    }
    const char c = text_[1];
    text_.remove_prefix(2);
    return c;
  }

 private:
  std::string_view text_;
  bool quoted_ = false;
};

bool SameCookie(std::string_view a, std::string_view b) noexcept {
  CookieReader first(a);
  CookieReader second(b);
  while (!first.done() && !second.done()) {
    if (first.Next() != second.Next()) return false;
  }
  return first.done() && second.done();
}

std::string_view CountedCookie(std::string_view value, std::pmr::memory_resource& memory) {
  CookieReader reader(value);
  char* const out = static_cast<char*>(memory.allocate(std::max<std::size_t>(reader.size(), 1), 1));
  char* end = out;
  while (!reader.done()) *end++ = reader.Next();
  return {out, static_cast<std::size_t>(end - out)};
}

std::string_view DecodeParameter(std::string_view encoded, std::pmr::memory_resource& memory) {
  if (encoded.find_first_of("%+") == std::string_view::npos) return encoded;
  char* const out = static_cast<char*>(memory.allocate(encoded.size(), 1));
  char* end = out;
  while (!encoded.empty()) *end++ = TakeFromQuery(encoded);
  return {out, static_cast<std::size_t>(end - out)};
}

/// Maps characters that some servers treat as equal in names to one character: ASP.NET ignores the
/// case of cookies, PHP replaces `.`, spaces and `[` by `_`.
char FoldName(char c) noexcept { return c == '.' || c == ' ' || c == '[' ? '_' : Lower(c); }

enum class Spelling : std::uint8_t { kOther, kSame, kFolded };

Spelling SpellingOf(std::string_view given, std::string_view name) noexcept {
  if (given == name) return Spelling::kSame;
  return std::ranges::equal(given, name, {}, FoldName, FoldName) ? Spelling::kFolded
                                                                 : Spelling::kOther;
}

/// Finds further cookies in a cookie's value, in one pass: Python ends a value before a comma or
/// white space if `name=` follows. Calls `found` with the previous value's end, and its own begin.
template <class Found>
void EachInnerCookie(std::string_view value, const Found& found) {
  std::size_t end = 0;       // The start of the last separators.
  std::size_t name = 0;      // The start of the name after those separators.
  bool between = false;      // True while reading separators.
  bool may_be_name = false;  // True if only characters of a name followed the separators.
  for (std::size_t i = 0; i < value.size();) {
    const char c = value[i];
    const std::size_t space = c == ',' ? 1 : SpaceAtBegin(value.substr(i));
    if (space > 0) {
      if (!between) end = i;
      between = true;
      i += space;
      continue;
    }
    if (between) name = i;
    may_be_name = (between || may_be_name) && c != '"';
    between = false;
    if (c == '=' && may_be_name && i > name) {
      found(end, value.substr(name, i - name), i + 1);
      may_be_name = false;
    }
    i += CharacterSize(value.substr(i));
  }
}

/// The different values that a cookie has on all `Cookie` lines, as sent.
class CookieValues {
 public:
  CookieValues(std::span<const HeaderField> headers, std::string_view name) noexcept : name_(name) {
    for (const HeaderField& field : headers) {
      if (!EqualsIgnoreCase(field.name, "cookie")) continue;
      for (std::string_view rest = field.value; !rest.empty();) AddAll(TakeUntil(rest, ';'));
    }
    // With only another spelling of the name, the upstream may see no cookie: do not count it.
    if (same_.count == 0) return;
    for (std::size_t i = 0; i < folded_.count; ++i) same_.Add(folded_.values[i]);
    same_.too_many = same_.too_many || folded_.too_many;
  }

  [[nodiscard]] std::size_t count() const noexcept { return same_.count; }
  [[nodiscard]] bool too_many() const noexcept { return same_.too_many; }
  /// Returns the value with index `i`; an empty view if `i` is too large.
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    return i < same_.count ? same_.values[i] : std::string_view();
  }

 private:
  struct Values {
    std::array<std::string_view, kMaxCookieValues> values;
    std::size_t count = 0;
    bool too_many = false;

    void Add(std::string_view value) noexcept {
      value = TrimSpaces(value);
      if (value.empty() || value == "\"\"" || too_many) return;
      for (std::size_t i = 0; i < count; ++i) {
        if (SameCookie(values[i], value)) return;
      }
      too_many = count == values.size();
      if (!too_many) values[count++] = value;
    }
  };

  Values* ValuesOf(std::string_view name) noexcept {
    const Spelling spelling = SpellingOf(TrimSpaces(name), name_);
    return spelling == Spelling::kSame     ? &same_
           : spelling == Spelling::kFolded ? &folded_
                                           : nullptr;
  }

  /// Adds the values in `text`: `name=value`, perhaps with further cookies in the value.
  void AddAll(std::string_view text) noexcept {
    std::string_view value = text;
    Values* values = ValuesOf(TakeUntil(value, '='));
    if (values != nullptr) values->Add(value);
    std::size_t begin = 0;
    EachInnerCookie(value, [&](std::size_t end, std::string_view name, std::size_t next) {
      if (values != nullptr) values->Add(value.substr(begin, end - begin));
      values = ValuesOf(name);
      begin = next;
    });
    if (values != nullptr && begin > 0) values->Add(value.substr(begin));
  }

  std::string_view name_;
  Values same_;
  Values folded_;
};

/// Compares `encoded`, the percent-encoded name of a query parameter, with `name`. PHP ignores
/// white space before a name and everything after a NUL.
Spelling SpellingOfParameter(std::string_view encoded, std::string_view name) noexcept {
  Spelling spelling = Spelling::kSame;
  bool begun = false;
  while (!encoded.empty() && !name.empty()) {
    const char c = TakeFromQuery(encoded);
    if (!begun && c == ' ') {
      spelling = Spelling::kFolded;
      continue;
    }
    if (FoldName(c) != FoldName(name[0])) return Spelling::kOther;
    if (c != name[0]) spelling = Spelling::kFolded;
    begun = true;
    name.remove_prefix(1);
  }
  if (!name.empty()) return Spelling::kOther;
  if (encoded.empty()) return spelling;
  return TakeFromQuery(encoded) == '\0' ? Spelling::kFolded : Spelling::kOther;
}

/// Returns the decoded value of a query parameter; an invalid percent sign is kept. An Error if
/// servers that split at `;` or accept other spellings of the name would read another value.
Result<std::string_view> OneParameter(std::string_view query, std::string_view name,
                                      std::pmr::memory_resource& memory) {
  std::string_view found;
  std::string_view other;  // A value that only some servers read.
  const auto counted = [&](std::string_view value) {
    return TrimSpaces(DecodeParameter(value, memory), Controls::kTrim);
  };
  while (!query.empty()) {
    std::string_view piece = TakeUntil(query, '&');
    std::string_view value = piece;
    const Spelling spelling = SpellingOfParameter(TakeUntil(value, '='), name);
    if (spelling != Spelling::kOther && !value.empty()) {
      const std::string_view text = counted(value);
      if (spelling == Spelling::kFolded) {
        if (!text.empty()) other = text;
      } else if (!text.empty() && text != found) {
        if (!found.empty()) return Several("query parameter", name);
        found = text;
      }
    }
    if (!piece.contains(';')) continue;
    for (static_cast<void>(TakeUntil(piece, ';')); !piece.empty();) {
      value = TakeUntil(piece, ';');
      if (SpellingOfParameter(TakeUntil(value, '='), name) == Spelling::kOther) continue;
      if (const std::string_view text = counted(value); !text.empty()) other = text;
    }
  }
  if (!found.empty() && !other.empty() && other != found) return Several("query parameter", name);
  return found;
}

}  // namespace

std::string_view CountedValue(const Source& source, std::string_view value,
                              std::pmr::memory_resource& memory) {
  switch (source.kind) {
    case Source::Kind::kHeader: return CountedHeader(source.name, value, memory);
    case Source::Kind::kCookie: return CountedCookie(value, memory);
    case Source::Kind::kQuery: return TrimSpaces(value, Controls::kTrim);
    default: return value;
  }
}

Result<std::string_view> ValueInRequest(const Source& source, const RequestView& request,
                                        const JwtVerifier* jwt, CookieChoice& cookie,
                                        std::pmr::memory_resource& memory) {
  switch (source.kind) {
    case Source::Kind::kHeader: return OneHeader(request.headers, source.name, memory);
    case Source::Kind::kCookie: {
      const CookieValues values(request.headers, source.name);
      if (values.too_many()) return Several("cookie", source.name);
      if (values.count() == 0) return std::string_view();
      if (values.count() > 1 && cookie.count > 1) return Several("cookie", source.name);
      cookie.count = std::max(cookie.count, values.count());
      return CountedCookie(values[values.count() == 1 ? 0 : cookie.number], memory);
    }
    case Source::Kind::kQuery: return OneParameter(request.query, source.name, memory);
    case Source::Kind::kPath: return request.counted_path();
    case Source::Kind::kRoute: return request.route;
    case Source::Kind::kMethod: return request.method;
    case Source::Kind::kHost: return request.host;
    case Source::Kind::kJwt: {
      if (jwt == nullptr) return std::string_view();
      auto authorization = OneHeader(request.headers, "authorization", memory);
      if (!authorization) return authorization;
      return jwt->Claim(*authorization, source.name, memory).value_or(std::string_view());
    }
    case Source::Kind::kClientIp:
    case Source::Kind::kConst: break;
  }
  return std::string_view();
}

}  // namespace tidegate
