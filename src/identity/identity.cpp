// SPDX-License-Identifier: Apache-2.0
#include "identity/identity.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <expected>
#include <optional>

#include "base/ascii.hpp"
#include "base/failure.hpp"
#include "base/message_text.hpp"
#include "identity/jwt.hpp"
#include "identity/path.hpp"
#include "identity/request_path.hpp"
#include "identity/source_value.hpp"

namespace tidegate {
namespace {

/// Printable ASCII except the characters that have a meaning in an identity or a Redis key.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = '!'; c <= '~'; ++c) plain[c] = true;
  for (const char c : std::string_view("%&={}~")) plain[static_cast<unsigned char>(c)] = false;
  return plain;
}();

bool IsPlain(char c) noexcept { return kPlain[static_cast<unsigned char>(c)]; }

std::size_t EncodedSize(std::string_view text) noexcept {
  return 3 * text.size() - 2 * static_cast<std::size_t>(std::ranges::count_if(text, IsPlain));
}

/// Writes an identity part by part, in the form that identity.hpp describes. Different identities
/// have different texts: a part ends at '&', its tag at the first '=', a hash begins with '~', and
/// all of these are encoded in names and values. No source has the tag `key` of inline quotas.
class IdentityText {
 public:
  static constexpr std::size_t kMaxPlain = 128;
  static constexpr std::size_t kKeyBound = 4 + 1 + KeyedHash::kTextSize;

  /// Returns the maximum length of an identity of a rule.
  static std::size_t Bound(const Per& per) noexcept {
    constexpr std::size_t kAround = sizeof("&client_ip:=") + kMaxPlain;
    std::size_t bound = 0;
    for (const Per::Part& part : per.parts) {
      std::size_t longest = 0;
      for (const Source& source : part) longest = std::max(longest, source.name.size());
      bound += kAround + 3 * longest;
    }
    return bound;
  }

  IdentityText(const KeyedHash& hash, std::size_t bound, std::pmr::memory_resource& memory)
      : hash_(hash), begin_(static_cast<char*>(memory.allocate(bound, 1))), end_(begin_) {}

  void Add(const Source& source, std::string_view value) noexcept {
    Begin(Name(source.kind));
    if (!source.name.empty()) {
      *end_++ = ':';
      Encoded(source.name);
    }
    *end_++ = '=';
    // Encoding never shortens a value, so the encoded size of a long value need not be computed.
    if (source.IsSecret() || value.size() > kMaxPlain || EncodedSize(value) > kMaxPlain) {
      Hashed(value);
    } else {
      Encoded(value);
    }
  }
  void Add(const Address& client) noexcept {
    Begin("client_ip");
    *end_++ = '=';
    end_ += client.Write(end_);  // Digits, letters, dots and colons need no encoding.
  }
  void AddConst() noexcept { Begin("const"); }
  void AddKey(std::string_view key) noexcept {
    Begin("key");
    *end_++ = '=';
    Hashed(key);
  }

  [[nodiscard]] std::string_view view() const noexcept {
    return {begin_, static_cast<std::size_t>(end_ - begin_)};
  }

 private:
  void Begin(std::string_view kind) noexcept {
    if (end_ != begin_) *end_++ = '&';
    end_ = std::ranges::copy(kind, end_).out;
  }
  void Encoded(std::string_view text) noexcept {
    for (const char c : text) {
      if (IsPlain(c)) {
        *end_++ = c;
      } else {
        end_ = WritePercentEncoded(end_, c);
      }
    }
  }
  void Hashed(std::string_view text) noexcept {
    *end_++ = '~';
    KeyedHash::WriteText(hash_(text), end_);
    end_ += KeyedHash::kTextSize;
  }

  const KeyedHash& hash_;
  char* begin_;
  char* end_;
};

const Source kClientIp{Source::Kind::kClientIp, {}};

std::unexpected<Error> RefuseLength(const std::string& what, std::size_t size) {
  return Failure(ErrorCode::kBadCharge, "the value of " + what + " has " + std::to_string(size) +
                                            " bytes: the most is " +
                                            std::to_string(kMaxIdentityValue));
}

/// Quotes a caller's text so that it fits a log line: at most 64 characters, unsafe ones as `?`.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, 64)) quoted += c > ' ' && c <= '~' && c != '"' ? c : '?';
  return quoted + (text.size() > 64 ? "...\"" : "\"");
}

/// Returns all sources of a part: `header:x-api-key or client_ip`.
std::string Names(const Per::Part& part) { return Joined(part, " or ", &Source::Text); }

/// Returns true if `text` names `source`. The case of header names is ignored.
bool IsNamed(const Source& source, std::string_view text) noexcept {
  const std::string_view kind = Name(source.kind);
  if (!text.starts_with(kind)) return false;
  text.remove_prefix(kind.size());
  if (source.name.empty()) return text.empty();
  if (!text.starts_with(':')) return false;
  text.remove_prefix(1);
  return source.kind == Source::Kind::kHeader ? EqualsIgnoreCase(text, source.name)
                                              : text == source.name;
}

/// Returns the rule's source that a value is for; nullptr if there is none.
const Source* Resolve(const Per& per, std::string_view text) noexcept {
  if (text.empty()) return &per.parts.front().front();
  const auto is_named = [text](const Source& source) { return IsNamed(source, text); };
  if (const Source* const source = per.Find(is_named)) return source;
  return is_named(kClientIp) ? &kClientIp : nullptr;
}

/// Returns a caller's value in the form by which requests are counted; nothing if none has it.
std::optional<std::string_view> AsInRequest(const Source& source, std::string_view value,
                                            bool ignore_path_case,
                                            std::pmr::memory_resource& memory) {
  switch (source.kind) {
    case Source::Kind::kHeader:
    case Source::Kind::kCookie:
    case Source::Kind::kQuery: return CountedValue(source, value, memory);
    case Source::Kind::kHost: return NormalizeHost(value, memory);
    case Source::Kind::kPath: {
      const auto path = ReadRequestPath(
          value, {.ignore_case = ignore_path_case, .encoded_slashes = EncodedSlashes::kMatch},
          memory);
      return path ? std::optional(path->lenient) : std::nullopt;
    }
    default: return value;
  }
}

/// Returns true if every request has one of the sources: none is counted by its address instead.
bool IsAlwaysThere(const Per::Part& part) noexcept {
  return std::ranges::any_of(part, [](const Source& source) {
    return source.kind == Source::Kind::kPath || source.kind == Source::Kind::kMethod;
  });
}

/// Returns the value that was given for `source`, or nullptr. REQUIRES: each value has a source.
const NamedValue* Given(const Per& per, std::span<const NamedValue> values,
                        const Source& source) noexcept {
  for (const NamedValue& value : values) {
    if (*Resolve(per, value.source) == source) return &value;
  }
  return nullptr;
}

/// Returns an Error unless each value has a source of the rule, no two have the same, and none is
/// empty. Stops at the first Error, so a million values cost no more than the rule's sources.
std::optional<Error> Check(const Per& per, std::span<const NamedValue> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [name, value] = values[i];
    const Source* const source = Resolve(per, name);
    if (source == nullptr) {
      return Error{ErrorCode::kBadCharge, "this rule does not count by " + Quoted(name) +
                                              ": the identity has values for " +
                                              Joined(per.parts, ", ", Names)};
    }
    if (Given(per, values.first(i), *source) != nullptr) {
      return Error{ErrorCode::kBadCharge, "the identity names " + source->Text() + " twice"};
    }
    if (source->kind == Source::Kind::kConst) continue;
    if (value.size() > kMaxIdentityValue) return RefuseLength(source->Text(), value.size()).error();
    std::pmr::monotonic_buffer_resource scratch;
    if (value.empty() || CountedValue(*source, value, scratch).empty()) {
      return Error{ErrorCode::kBadCharge, "the value of " + source->Text() +
                                              " is empty: all such callers would share one quota"};
    }
  }
  return std::nullopt;
}

/// Returns true if `value` is written as IdentityText writes a value that is not hashed.
bool IsEncoded(std::string_view value) noexcept {
  for (std::string_view rest = value; !rest.empty();) {
    const char c = rest.front();
    if (c <= ' ' || c >= '\x7f' || std::string_view("{}~=#&").contains(c)) return false;
    if (!TakeDecoded(rest).encoded && c == '%') return false;
  }
  return !value.empty();
}

bool IsHash(std::string_view value) noexcept {
  return value.size() == KeyedHash::kTextSize + 1 && value.front() == '~' &&
         std::ranges::all_of(value.substr(1),
                             [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_'; });
}

/// Returns true if a part of an identity may have this value.
bool CouldBeValue(const Source& source, std::string_view value) noexcept {
  if (IsHash(value)) return true;
  if (source.IsSecret() || !IsEncoded(value)) return false;
  return source.kind != Source::Kind::kPath || value.front() == '/';
}

}  // namespace

Identifier::Identifier(Options options) : options_(std::move(options)), hash_(options_.hmac_key) {
  assert(options_.hmac_key.size() >= 16);
}

Result<std::string_view> Identifier::FromRequest(const Per& per, const RequestView& request,
                                                 std::pmr::memory_resource& memory,
                                                 CookieChoice* choice) const {
  CookieChoice first;
  CookieChoice& cookie = choice != nullptr ? *choice : first;
  cookie.count = 1;
  IdentityText text(hash_, IdentityText::Bound(per), memory);
  for (const Per::Part& part : per.parts) {
    bool found = false;
    for (const Source& source : part) {
      if (source.kind == Source::Kind::kConst) {
        text.AddConst();
        found = true;
      } else if (source.kind == Source::Kind::kClientIp) {
        if (!request.has_client) continue;
      } else {
        auto value = ValueInRequest(source, request, options_.jwt.get(), cookie, memory);
        if (!value) return value;
        if (cookie.count > 1 && options_.reject_duplicate_cookies) {
          return Failure(
              ErrorCode::kBadCharge,
              "the cookie " + source.name +
                  " has several different values, but requests are counted by it: send it once");
        }
        if (value->size() > kMaxIdentityValue) return RefuseLength(source.Text(), value->size());
        if (value->empty()) continue;
        text.Add(source, *value);
        found = true;
      }
      break;
    }
    if (found) continue;
    if (!request.has_client) {
      return Failure(ErrorCode::kBadCharge, "the request has neither " + Names(part) +
                                                " nor a client address to count by");
    }
    text.Add(request.client.MaskedV6(options_.ipv6_prefix));
  }
  return text.view();
}

Result<std::string_view> Identifier::FromValues(const Per& per, std::span<const NamedValue> values,
                                                std::pmr::memory_resource& memory) const {
  if (auto error = Check(per, values)) return std::unexpected(std::move(*error));
  IdentityText text(hash_, IdentityText::Bound(per), memory);
  for (const Per::Part& part : per.parts) {
    const Source* source = nullptr;
    const NamedValue* given = nullptr;
    for (const Source& alternative : part) {
      source = &alternative;
      given = Given(per, values, alternative);
      if (given != nullptr || source->kind == Source::Kind::kConst) break;
    }
    if (source->kind == Source::Kind::kConst) {
      text.AddConst();
      continue;
    }
    if (given == nullptr && !IsAlwaysThere(part)) {
      source = &kClientIp;
      given = Given(per, values, kClientIp);
    }
    if (given == nullptr)
      return Failure(ErrorCode::kBadCharge, "the identity has no value for " + Names(part));
    if (source->kind != Source::Kind::kClientIp) {
      const auto value = AsInRequest(*source, given->value, options_.ignore_path_case, memory);
      if (!value) {
        return Failure(
            ErrorCode::kBadCharge,
            source->kind == Source::Kind::kPath
                ? "the value of path is not a path of a request: it must begin with a slash, have "
                  "no query and be percent-encoded where RFC 3986 requires it"
                : "the value of host is not a host name");
      }
      text.Add(*source, *value);
      continue;
    }
    const auto address = Address::Parse(given->value);
    if (!address) {
      return Failure(
          ErrorCode::kBadCharge,
          "the value of client_ip is not an IP address such as 203.0.113.7 or 2001:db8::1");
    }
    text.Add(address->MaskedV6(options_.ipv6_prefix));
  }
  return text.view();
}

Result<std::string_view> Identifier::FromKey(std::string_view key,
                                             std::pmr::memory_resource& memory) const {
  if (key.empty())
    return Failure(ErrorCode::kBadCharge,
                   "the key is empty: all such callers would share one quota");
  if (key.size() > kMaxIdentityValue) return RefuseLength("the key", key.size());
  IdentityText text(hash_, IdentityText::kKeyBound, memory);
  text.AddKey(key);
  return text.view();
}

bool Identifier::CouldBe(const Per& per, std::string_view identity) const {
  for (std::size_t i = 0; i < per.parts.size(); ++i) {
    const std::size_t end = i + 1 == per.parts.size() ? identity.size() : identity.find('&');
    if (end == std::string_view::npos) return false;
    const std::string_view part = identity.substr(0, end);
    identity.remove_prefix(std::min(end + 1, identity.size()));
    const std::size_t equals = part.find('=');
    const std::string_view tag = part.substr(0, equals);
    const bool address = tag == "client_ip";  // `client_ip` replaces missing sources.
    const auto source =
        std::ranges::find_if(per.parts[i], [&](const Source& each) { return each.Text() == tag; });
    if (source == per.parts[i].end() && (!address || IsAlwaysThere(per.parts[i]))) return false;
    if (equals == std::string_view::npos) {
      if (address || source->kind != Source::Kind::kConst) return false;
      continue;
    }
    const std::string_view value = part.substr(equals + 1);
    if (address) {
      const auto parsed = Address::Parse(value);
      if (!parsed || parsed->MaskedV6(options_.ipv6_prefix).Text() != value) return false;
    } else if (source->kind == Source::Kind::kConst || !CouldBeValue(*source, value)) {
      return false;
    }
  }
  return true;
}

std::string Identifier::Veiled(std::string_view identity) const {
  std::string veiled;
  while (!identity.empty()) {
    const std::string_view part = TakeUntil(identity, '&');
    const std::size_t equals = part.find('=');
    if (!veiled.empty()) veiled += '&';
    // `const` has no value, and a value that begins with `~` is already a hash.
    if (equals == std::string_view::npos || part.substr(equals + 1).starts_with('~')) {
      veiled += part;
    } else {
      std::array<char, KeyedHash::kTextSize> text;
      // The prefix makes the hash differ from that of a secret value, so they cannot be confused.
      KeyedHash::WriteText(hash_("shown: " + std::string(part)), text.data());
      veiled.append(part.substr(0, equals + 1)).append("#").append(text.data(), text.size());
    }
  }
  return veiled;
}

void Identifier::WritePartition(std::string_view rule, std::string_view identity,
                                std::span<char, kPartitionSize> out) const {
  std::string key = "partition: ";
  key.append(rule).append(" ").append(identity);
  std::array<char, KeyedHash::kTextSize> text;
  KeyedHash::WriteText(hash_(key), text.data());
  // Twelve characters are nine complete bytes, so that no padding is needed.
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
  }
}

}  // namespace tidegate
