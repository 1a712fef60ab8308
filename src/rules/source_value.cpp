// SPDX-License-Identifier: Apache-2.0
#include "rules/source_value.hpp"

#include <algorithm>
#include <array>

#include "rules/ascii.hpp"
#include "rules/spaces.hpp"

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

/// `Bearer  abc` and `bearer abc` are the same credentials: the scheme has no case.
std::string_view CountedCredentials(std::string_view value, std::pmr::memory_resource& memory) {
  std::size_t space = 0;
  while (space < value.size() && SpaceAtBegin(value.substr(space)) == 0) ++space;
  if (space == value.size()) return value;
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

/// Reads the bytes of a cookie's value as servers may decode them: without quotes, with `\"`,
/// `\\` and `\101` in quotes (Python), and percent-decoded (Express, PHP).
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
    if (!quoted_ || text_[0] != '\\' || text_.size() < 2) {
      return TakeDecoded(text_, Plus::kItself);
    }
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
  while (!encoded.empty()) *end++ = TakeDecoded(encoded, Plus::kSpace);
  return {out, static_cast<std::size_t>(end - out)};
}

/// Returns the size of the beginning of `text`, a cookie's value, that ends before another cookie:
/// Python also takes a comma or white space between two cookies.
std::size_t SizeBeforeNextCookie(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',' && SpaceAtBegin(text.substr(i)) == 0) continue;
    std::size_t name = i;
    while (name < text.size() && (text[name] == ',' || text[name] == ' ')) ++name;
    std::size_t end = name;
    while (end < text.size() && std::string_view(",; \t\"=").find(text[end]) == text.npos) ++end;
    if (end > name && end < text.size() && text[end] == '=') return i;
  }
  return text.size();
}

/// The different values of a cookie on all `Cookie` lines, as sent.
class CookieValues {
 public:
  CookieValues(std::span<const HeaderField> headers, std::string_view name) noexcept {
    for (const HeaderField& field : headers) {
      if (!EqualsIgnoreCase(field.name, "cookie")) continue;
      for (std::string_view rest = field.value; !rest.empty();) AddAll(TakeFirst(rest, ';'), name);
    }
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] bool too_many() const noexcept { return too_many_; }
  /// Returns value number `i`, or the last one if there are fewer; empty if there is none.
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    return count_ == 0 ? std::string_view() : values_[std::min(i, count_ - 1)];
  }

 private:
  /// Adds the values of the cookie in `text`, which has no semicolon.
  void AddAll(std::string_view text, std::string_view name) noexcept {
    while (!text.empty()) {
      std::string_view value = text;
      const bool found =
          TrimSpaces(TakeFirst(value, '=')) == name && text.find('=') != std::string_view::npos;
      const std::size_t size = SizeBeforeNextCookie(value);
      if (found) Add(TrimSpaces(value));
      if (found) Add(TrimSpaces(value.substr(0, size)));
      value.remove_prefix(size);
      while (value.starts_with(',') || SpaceAtBegin(value) > 0) value.remove_prefix(1);
      text = value;
    }
  }
  void Add(std::string_view value) noexcept {
    if (value.empty() || value == "\"\"") return;
    for (std::size_t i = 0; i < count_; ++i) {
      if (SameCookie(values_[i], value)) return;
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
    value = TrimSpaces(DecodeParameter(value, memory), Controls::kTrim);
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
      return CountedCookie(value, memory);
    case Source::Kind::kQuery:
      return TrimSpaces(value, Controls::kTrim);
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
      return CountedCookie(CookieValues(request.headers, source.name)[cookie], memory);
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
