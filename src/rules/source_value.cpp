// SPDX-License-Identifier: Apache-2.0
#include "rules/source_value.hpp"

#include <algorithm>
#include <array>

#include "rules/ascii.hpp"

namespace tidegate {
namespace {

std::unexpected<Error> Several(std::string_view kind, std::string_view name) {
  return std::unexpected(
      Error{ErrorCode::kBadCharge, "the " + std::string(kind) + " " + std::string(name) +
                                       " has several different values, but requests are counted "
                                       "by it: send it once"});
}

/// Takes the text before the first `divider` off the front of `text`, with the divider.
std::string_view TakeFirst(std::string_view& text, char divider) noexcept {
  const std::size_t end = std::min(text.find(divider), text.size());
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return piece;
}

/// Spaces beyond ASCII that string functions of common languages strip: as Latin-1, which is how
/// many servers decode header fields, and as UTF-8.
constexpr std::string_view kWideSpaces[] = {
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
    "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
    "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f",
    "\xe3\x80\x80", "\xef\xbb\xbf", "\xa0",         "\x85"};

std::string_view TrimWide(std::string_view text) noexcept {
  for (bool again = true; again;) {
    text = Trim(text);
    again = false;
    for (const std::string_view space : kWideSpaces) {
      if (text.starts_with(space)) text.remove_prefix(space.size()), again = true;
      if (text.ends_with(space)) text.remove_suffix(space.size()), again = true;
    }
  }
  return text;
}

/// Trims the white space at both ends. Nearly always there is only ASCII.
std::string_view TrimSpaces(std::string_view text) noexcept {
  text = Trim(text);
  const auto wide = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  if (text.empty() || (!wide(text.front()) && !wide(text.back()))) return text;
  return TrimWide(text);
}

/// `Bearer  abc` and `bearer abc` are the same credentials: the scheme has no case.
std::string_view CountedCredentials(std::string_view value, std::pmr::memory_resource& memory) {
  const std::size_t space = value.find_first_of(" \t");
  if (space == std::string_view::npos) return value;
  const std::string_view scheme = value.substr(0, space);
  const std::string_view rest = TrimSpaces(value.substr(space));
  char* const out = static_cast<char*>(memory.allocate(value.size(), 1));
  char* end = std::transform(scheme.begin(), scheme.end(), out, Lower);
  *end++ = ' ';
  end = std::copy(rest.begin(), rest.end(), end);
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

enum class Plus : std::uint8_t { kItself, kSpace };

/// Decodes one byte and takes it off the front. REQUIRES: not empty.
char TakeDecoded(std::string_view& text, Plus plus) noexcept {
  const char c = text[0];
  if (c == '%' && text.size() >= 3) {
    const int high = HexDigit(text[1]);
    const int low = HexDigit(text[2]);
    if (high >= 0 && low >= 0) {
      text.remove_prefix(3);
      return static_cast<char>(high * 16 + low);
    }
  }
  text.remove_prefix(1);
  return c == '+' && plus == Plus::kSpace ? ' ' : c;
}

bool DecodedEquals(std::string_view encoded, std::string_view plain) noexcept {
  while (!encoded.empty() && !plain.empty()) {
    if (TakeDecoded(encoded, Plus::kSpace) != plain[0]) return false;
    plain.remove_prefix(1);
  }
  return encoded.empty() && plain.empty();
}

/// True if both have the same bytes when percent-decoded.
bool EqualWhenDecoded(std::string_view a, std::string_view b) noexcept {
  while (!a.empty() && !b.empty()) {
    if (TakeDecoded(a, Plus::kItself) != TakeDecoded(b, Plus::kItself)) return false;
  }
  return a.empty() && b.empty();
}

std::string_view Decode(std::string_view encoded, Plus plus, std::pmr::memory_resource& memory) {
  if (encoded.find_first_of(plus == Plus::kSpace ? "%+" : "%") == std::string_view::npos) {
    return encoded;
  }
  char* const out = static_cast<char*>(memory.allocate(encoded.size(), 1));
  char* end = out;
  while (!encoded.empty()) *end++ = TakeDecoded(encoded, plus);
  return {out, static_cast<std::size_t>(end - out)};
}

std::string_view Unquoted(std::string_view value) noexcept {
  const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return quoted ? value.substr(1, value.size() - 2) : value;
}

/// The different values of a cookie on all `Cookie` lines, without quotes and as sent.
class CookieValues {
 public:
  CookieValues(std::span<const HeaderField> headers, std::string_view name) noexcept {
    for (const HeaderField& field : headers) {
      if (!EqualsIgnoreCase(field.name, "cookie")) continue;
      for (std::string_view rest = field.value; !rest.empty();) {
        std::string_view value = TakeFirst(rest, ';');
        if (value.find('=') == std::string_view::npos) continue;
        if (TrimSpaces(TakeFirst(value, '=')) == name) Add(TrimSpaces(Unquoted(TrimSpaces(value))));
      }
    }
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] bool too_many() const noexcept { return too_many_; }
  /// Returns value number `i`, or the last one if there are fewer; empty if there is none.
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    return count_ == 0 ? std::string_view() : values_[std::min(i, count_ - 1)];
  }

 private:
  void Add(std::string_view value) noexcept {
    if (value.empty()) return;
    for (std::size_t i = 0; i < count_; ++i) {
      if (EqualWhenDecoded(values_[i], value)) return;
    }
    too_many_ = too_many_ || count_ == values_.size();
    if (!too_many_) values_[count_++] = value;
  }

  std::array<std::string_view, kMaxCookieValues> values_;
  std::size_t count_ = 0;
  bool too_many_ = false;
};

/// Returns the value of a query parameter, decoded: `%41` is `A`, `+` a space, a broken percent
/// sign itself. Names are compared decoded.
Result<std::string_view> OneParameter(std::string_view query, std::string_view name,
                                      std::pmr::memory_resource& memory) {
  std::string_view found;
  while (!query.empty()) {
    std::string_view value = TakeFirst(query, '&');
    const std::string_view key = TakeFirst(value, '=');
    if (value.empty() || !DecodedEquals(key, name)) continue;
    value = TrimSpaces(Decode(value, Plus::kSpace, memory));
    if (value.empty() || value == found) continue;
    if (!found.empty()) return Several("query parameter", name);
    found = value;
  }
  return found;
}

}  // namespace

std::string_view CountedValue(const Source& source, std::string_view value,
                              std::pmr::memory_resource& memory) {
  switch (source.kind) {
    case Source::Kind::kHeader:
      return CountedHeader(source.name, value, memory);
    case Source::Kind::kCookie:
      return Decode(TrimSpaces(value), Plus::kItself, memory);
    case Source::Kind::kQuery:
      return TrimSpaces(value);
    default:
      return value;
  }
}

Result<std::size_t> CountCookieValues(const RequestView& request, std::string_view name) {
  const CookieValues values(request.headers, name);
  if (values.too_many()) return Several("cookie", name);
  return values.count();
}

Result<std::string_view> ValueInRequest(const Source& source, const RequestView& request,
                                        const JwtVerifier* jwt, std::size_t cookie,
                                        std::pmr::memory_resource& memory) {
  switch (source.kind) {
    case Source::Kind::kHeader:
      return OneHeader(request.headers, source.name, memory);
    case Source::Kind::kCookie:
      return Decode(CookieValues(request.headers, source.name)[cookie], Plus::kItself, memory);
    case Source::Kind::kQuery:
      return OneParameter(request.query, source.name, memory);
    case Source::Kind::kPath:
      return request.counted_path();
    case Source::Kind::kRoute:
      return request.route;
    case Source::Kind::kMethod:
      return request.method;
    case Source::Kind::kHost:
      return request.host;
    case Source::Kind::kJwt: {
      if (jwt == nullptr) return std::string_view();
      const auto authorization = OneHeader(request.headers, "authorization", memory);
      if (!authorization) return authorization;
      return jwt->Claim(*authorization, source.name, memory).value_or(std::string_view());
    }
    case Source::Kind::kClientIp:
    case Source::Kind::kConst:
      break;
  }
  return std::string_view();
}

}  // namespace tidegate
