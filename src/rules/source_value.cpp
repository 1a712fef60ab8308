// SPDX-License-Identifier: Apache-2.0
#include "rules/source_value.hpp"

#include <algorithm>

#include "rules/ascii.hpp"

namespace tidegate {
namespace {

/// Whoever is asked may take the first, the last or all of them; who is counted must not depend on
/// it.
std::unexpected<Error> Several(std::string_view kind, std::string_view name) {
  return std::unexpected(Error{ErrorCode::kBadCharge,
                               "the " + std::string(kind) + " " + std::string(name) +
                                   " comes with several values: it says who is counted, so it must "
                                   "be sent once"});
}

/// Takes what stands before the first `divider` off the front of `text`, the divider too.
std::string_view TakeFirst(std::string_view& text, char divider) noexcept {
  const std::size_t end = std::min(text.find(divider), text.size());
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return piece;
}

Result<std::string_view> OneHeader(std::span<const HeaderField> headers, std::string_view name) {
  std::string_view found;
  for (const HeaderField& field : headers) {
    if (!EqualsIgnoreCase(field.name, name)) continue;
    const std::string_view value = Trim(field.value);
    if (value.empty() || value == found) continue;
    if (!found.empty()) return Several("header", name);
    found = value;
  }
  return found;
}

/// One byte of a query, decoded, taken off the front. REQUIRES: not empty.
char TakeDecoded(std::string_view& text) noexcept {
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
  return c == '+' ? ' ' : c;
}

bool DecodedEquals(std::string_view encoded, std::string_view plain) noexcept {
  while (!encoded.empty() && !plain.empty()) {
    if (TakeDecoded(encoded) != plain[0]) return false;
    plain.remove_prefix(1);
  }
  return encoded.empty() && plain.empty();
}

std::string_view Decode(std::string_view encoded, std::pmr::memory_resource& memory) {
  if (encoded.find_first_of("%+") == std::string_view::npos) return encoded;
  char* const out = static_cast<char*>(memory.allocate(encoded.size(), 1));
  char* end = out;
  while (!encoded.empty()) *end++ = TakeDecoded(encoded);
  return {out, static_cast<std::size_t>(end - out)};
}

std::string_view Unquoted(std::string_view value) noexcept {
  const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return quoted ? value.substr(1, value.size() - 2) : value;
}

/// The first value of a cookie that is not empty, on any `Cookie` line, without its quotes.
/// Browsers rightly send several, the nearest path's first, and servers take that one.
std::string_view FindCookie(std::span<const HeaderField> headers, std::string_view name) noexcept {
  for (const HeaderField& field : headers) {
    if (!EqualsIgnoreCase(field.name, "cookie")) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      std::string_view value = TakeFirst(rest, ';');
      if (value.find('=') == std::string_view::npos) continue;
      if (Trim(TakeFirst(value, '=')) != name) continue;
      value = Unquoted(Trim(value));
      if (!value.empty()) return value;
    }
  }
  return {};
}

/// The value of a query parameter, decoded: `%41` is `A`, `+` a space, a broken percent sign
/// itself. Names are compared decoded.
Result<std::string_view> OneParameter(std::string_view query, std::string_view name,
                                      std::pmr::memory_resource& memory) {
  std::string_view found;
  while (!query.empty()) {
    std::string_view value = TakeFirst(query, '&');
    const std::string_view key = TakeFirst(value, '=');
    if (value.empty() || !DecodedEquals(key, name)) continue;
    value = Decode(value, memory);
    if (value == found) continue;
    if (!found.empty()) return Several("query parameter", name);
    found = value;
  }
  return found;
}

}  // namespace

Result<std::string_view> ValueInRequest(const Source& source, const RequestView& request,
                                        const JwtVerifier* jwt, std::pmr::memory_resource& memory) {
  switch (source.kind) {
    case Source::Kind::kHeader:
      return OneHeader(request.headers, source.name);
    case Source::Kind::kCookie:
      return FindCookie(request.headers, source.name);
    case Source::Kind::kQuery:
      return OneParameter(request.query, source.name, memory);
    case Source::Kind::kPath:
      return request.path;
    case Source::Kind::kRoute:
      return request.route;
    case Source::Kind::kMethod:
      return request.method;
    case Source::Kind::kHost:
      return request.host;
    case Source::Kind::kJwt: {
      if (jwt == nullptr) return std::string_view();
      const auto authorization = OneHeader(request.headers, "authorization");
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
