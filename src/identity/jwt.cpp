// SPDX-License-Identifier: Apache-2.0
#include "identity/jwt.hpp"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "base/ascii.hpp"
#include "base/failure.hpp"
#include "base/json_events.hpp"
#include "identity/jwt_key.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMaxToken = 8192;
constexpr double kLeewaySeconds = 30;
constexpr std::size_t kMaxDepth = 16;

/// The outermost members of a JSON object, all that is needed of a token's header and claims. All
/// memory comes from the resource that is passed to Parse(). The parser calls the `on_` functions.
class JwtJson : public JsonEvents {
 public:
  enum class Kind : std::uint8_t { kString, kInteger, kNumber, kArray, kOther };
  struct Member {
    std::string_view name = {};
    Kind kind = Kind::kOther;
    std::string_view text = {};  ///< Set for kString and kInteger.
    double number = 0;           ///< Set for kInteger and kNumber.
    /// kArray: the array's strings, as a range of `items_`.
    std::size_t first_item = 0;
    std::size_t item_count = 0;
  };

  /// Parses exactly one JSON object. Returns nothing if `text` is anything else, is nested deeper
  /// than 16, or repeats a name in any object: readers could then see different claims.
  static std::optional<JwtJson> Parse(std::string_view text, std::pmr::memory_resource& memory);

  const Member* Find(std::string_view name) const noexcept;
  /// Returns true if the member is the string `value`, or an array that contains it.
  bool Holds(std::string_view name, std::string_view value) const noexcept;

  JwtJson(std::string_view text, std::pmr::memory_resource& memory)
      : JsonEvents(text, memory), members_(&memory), items_(&memory), keys_(&memory) {}

  bool on_object_begin(JsonError&) {
    if (depth_ == 0) is_object_ = true;
    Add({});
    objects_[++depth_] = ++object_count_;
    return true;
  }
  bool on_object_end(std::size_t, JsonError&) noexcept {
    --depth_;
    return true;
  }
  bool on_array_begin(JsonError&) {
    Add({.kind = Kind::kArray, .first_item = items_.size()});
    ++depth_;
    return true;
  }
  bool on_array_end(std::size_t, JsonError&) noexcept {
    --depth_;
    return true;
  }
  bool on_key(JsonText part, std::size_t, JsonError&) {
    name_ = Whole(part);
    keys_.push_back({objects_[depth_], name_});
    return true;
  }
  bool on_string(JsonText part, std::size_t, JsonError&) {
    return Add({.kind = Kind::kString, .text = Whole(part)});
  }
  bool on_int64(std::int64_t number, JsonText, JsonError&) { return AddInteger(number); }
  bool on_uint64(std::uint64_t number, JsonText, JsonError&) { return AddInteger(number); }
  bool on_double(double number, JsonText, JsonError&) {
    return Add({.kind = Kind::kNumber, .number = number});
  }
  bool on_bool(bool, JsonError&) { return Add({}); }
  bool on_null(JsonError&) { return Add({}); }

 private:
  struct Key {
    std::uint32_t object;
    std::string_view name;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  template <class N>
  bool AddInteger(N number) {
    std::array<char, 20> digits;  // -2^63 and 2^64 - 1 need 20 characters.
    const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return Add({.kind = Kind::kInteger,
                .text = Whole({digits.data(), static_cast<std::size_t>(end - digits.data())}),
                .number = static_cast<double>(number)});
  }

  /// Stores a value of the outermost object, or a string in an array of that object.
  bool Add(Member member) {
    if (depth_ == 1 && is_object_) {
      member.name = name_;
      members_.push_back(member);
    } else if (depth_ == 2 && member.kind == Kind::kString && !members_.empty() &&
               members_.back().kind == Kind::kArray) {
      items_.push_back(member.text);
      ++members_.back().item_count;
    }
    return true;
  }

  std::pmr::vector<Member> members_;
  std::pmr::vector<std::string_view> items_;
  std::pmr::vector<Key> keys_;
  std::string_view name_;
  std::array<std::uint32_t, kMaxDepth + 2> objects_{};
  std::uint32_t object_count_ = 0;
  std::size_t depth_ = 0;
  bool is_object_ = false;
};

std::optional<JwtJson> JwtJson::Parse(std::string_view text, std::pmr::memory_resource& memory) {
  boost::json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::json::basic_parser<JwtJson> parser(options, text, memory);
  JsonError error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (error || read != text.size() || !parser.done()) return std::nullopt;
  JwtJson& json = parser.handler();
  std::ranges::sort(json.keys_);
  const bool has_equal_keys = std::ranges::adjacent_find(json.keys_) != json.keys_.end();
  return json.is_object_ && !has_equal_keys ? std::optional(std::move(json)) : std::nullopt;
}

const JwtJson::Member* JwtJson::Find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(members_, name, &Member::name);
  return found == members_.end() ? nullptr : &*found;
}

bool JwtJson::Holds(std::string_view name, std::string_view value) const noexcept {
  const Member* const member = Find(name);
  if (member == nullptr) return false;
  if (member->kind == Kind::kString) return member->text == value;
  const auto items = std::span(items_).subspan(member->first_item, member->item_count);
  return std::ranges::find(items, value) != items.end();
}

/// Returns the token of `Bearer <token>`; empty if `authorization` has another form.
std::string_view BearerToken(std::string_view authorization) noexcept {
  constexpr std::string_view kScheme = "Bearer ";
  authorization = Trim(authorization);
  if (!EqualsIgnoreCase(authorization.substr(0, kScheme.size()), kScheme)) return {};
  return Trim(authorization.substr(kScheme.size()));
}

/// The three parts of a compact JWS, still encoded.
struct Pieces {
  std::string_view header;
  std::string_view payload;
  std::string_view signature;
  std::string_view signed_text;  ///< Header and payload, with the dot between them.
};
std::optional<Pieces> Split(std::string_view token) noexcept {
  const std::size_t first = token.find('.');
  const std::size_t last = token.rfind('.');
  if (first == last || token.find('.', first + 1) != last) return std::nullopt;
  return Pieces{token.substr(0, first), token.substr(first + 1, last - first - 1),
                token.substr(last + 1), token.substr(0, last)};
}

bool SignatureHolds(const JwtKey& key, const Pieces& pieces, std::pmr::memory_resource& memory) {
  const auto header_text = DecodeBase64Url(pieces.header, memory);
  const auto signature = DecodeBase64Url(pieces.signature, memory);
  if (!header_text || !signature) return false;
  const auto header = JwtJson::Parse(*header_text, memory);
  // `crit` lists extensions that a verifier must support, and this one supports none.
  if (!header || header->Find("crit") != nullptr) return false;
  const JwtJson::Member* const algorithm = header->Find("alg");
  return algorithm != nullptr && algorithm->kind == JwtJson::Kind::kString &&
         key.Verify(algorithm->text, pieces.signed_text, *signature);
}

/// Returns true if the member is a finite number. 1e999 is read as infinity.
bool IsDate(const JwtJson::Member& member) noexcept {
  return (member.kind == JwtJson::Kind::kInteger || member.kind == JwtJson::Kind::kNumber) &&
         std::isfinite(member.number);
}

/// Returns true if the token is valid now. A date that is no finite number makes it invalid.
bool TimesHold(const JwtJson& claims, bool require_exp, Time now_time) noexcept {
  const double now = std::chrono::duration<double>(now_time.time_since_epoch()).count();
  const JwtJson::Member* const expires = claims.Find("exp");
  if (expires == nullptr && require_exp) return false;
  if (expires != nullptr && !(IsDate(*expires) && now < expires->number + kLeewaySeconds)) {
    return false;
  }
  const JwtJson::Member* const not_before = claims.Find("nbf");
  return not_before == nullptr ||
         (IsDate(*not_before) && now >= not_before->number - kLeewaySeconds);
}

constexpr std::uint8_t kNone = 64;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}();

}  // namespace

struct JwtVerifier::State {
  Options options;
  std::optional<JwtKey> key;  ///< Empty: tokens are not verified.
  RealClock real_clock;

  [[nodiscard]] bool ClaimsHold(const JwtJson& claims) const noexcept {
    const Clock& clock = options.clock != nullptr ? *options.clock : real_clock;
    if (!TimesHold(claims, options.require_exp, clock.Now())) return false;
    if (!options.issuer.empty()) {
      const JwtJson::Member* const iss = claims.Find("iss");
      if (iss == nullptr || iss->kind != JwtJson::Kind::kString || iss->text != options.issuer) {
        return false;
      }
    }
    return options.audience.empty() || claims.Holds("aud", options.audience);
  }
};

JwtVerifier::JwtVerifier(std::unique_ptr<State> state) : state_(std::move(state)) {}
JwtVerifier::~JwtVerifier() = default;

Result<std::shared_ptr<const JwtVerifier>> JwtVerifier::Make(Options options) {
  const int ways = (options.hmac_secret.empty() ? 0 : 1) +
                   (options.public_key_pem.empty() ? 0 : 1) + (options.unverified ? 1 : 0);
  if (ways != 1) {
    return Failure(ErrorCode::kBadConfig,
                   "jwt needs exactly one of a secret, a public key, and the word `unverified`, "
                   "which accepts every token");
  }
  auto state = std::make_unique<State>();
  if (!options.unverified) {
    auto key = options.hmac_secret.empty() ? JwtKey::FromPem(options.public_key_pem)
                                           : JwtKey::FromSecret(std::move(options.hmac_secret));
    if (!key) return std::unexpected(std::move(key.error()));
    state->key = std::move(*key);
  }
  state->options = std::move(options);
  return std::shared_ptr<const JwtVerifier>(new JwtVerifier(std::move(state)));
}

std::optional<std::string_view> JwtVerifier::Claim(std::string_view authorization,
                                                   std::string_view claim,
                                                   std::pmr::memory_resource& memory) const try {
  const std::string_view token = BearerToken(authorization);
  if (token.empty() || token.size() > kMaxToken) return std::nullopt;
  const auto pieces = Split(token);
  if (!pieces) return std::nullopt;
  if (state_->key && !SignatureHolds(*state_->key, *pieces, memory)) return std::nullopt;
  const auto payload = DecodeBase64Url(pieces->payload, memory);
  if (!payload) return std::nullopt;
  const auto claims = JwtJson::Parse(*payload, memory);
  if (!claims || !state_->ClaimsHold(*claims)) return std::nullopt;
  const JwtJson::Member* const member = claims->Find(claim);
  const bool readable = member != nullptr && (member->kind == JwtJson::Kind::kString ||
                                              member->kind == JwtJson::Kind::kInteger);
  return readable ? std::optional(member->text) : std::nullopt;
} catch (...) {  // Out of memory: treat the token as absent.
  return std::nullopt;
}

std::optional<std::string_view> DecodeBase64Url(std::string_view text,
                                                std::pmr::memory_resource& memory) {
  if (text.size() % 4 == 1) return std::nullopt;
  const std::size_t size = text.size() / 4 * 3 + text.size() % 4 * 3 / 4;
  char* const out = static_cast<char*>(memory.allocate(size + 1, 1));  // Never 0 bytes.
  char* end = out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(c)];
    if (value == kNone) return std::nullopt;
    bits = bits << 6 | value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    *end++ = static_cast<char>(bits >> held & 0xff);
  }
  if ((bits & ((1u << held) - 1)) != 0) return std::nullopt;
  return std::string_view(out, size);
}

}  // namespace tidegate
