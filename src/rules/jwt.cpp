// SPDX-License-Identifier: Apache-2.0
#include "rules/jwt.hpp"

#include <chrono>
#include <cmath>

#include "core/refuse.hpp"
#include "rules/ascii.hpp"
#include "rules/base64url.hpp"
#include "rules/jwt_json.hpp"
#include "rules/jwt_key.hpp"
#include "rules/request_view.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMaxToken = 8192;
constexpr double kLeewaySeconds = 30;

/// The token of `Bearer <token>`; empty if it is something else.
std::string_view BearerToken(std::string_view authorization) noexcept {
  constexpr std::string_view kScheme = "Bearer ";
  authorization = Trim(authorization);
  if (!EqualsIgnoreCase(authorization.substr(0, kScheme.size()), kScheme)) return {};
  return Trim(authorization.substr(kScheme.size()));
}

/// The three pieces of a compact JWS, still encoded.
struct Pieces {
  std::string_view header;
  std::string_view payload;
  std::string_view signature;
  std::string_view signed_text;  ///< Header and payload with the dot between.
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
  // `crit` names what a reader must understand, and this one understands no extension.
  if (!header || header->Find("crit") != nullptr) return false;
  const JwtJson::Member* const algorithm = header->Find("alg");
  return algorithm != nullptr && algorithm->kind == JwtJson::Kind::kString &&
         key.Verify(algorithm->text, pieces.signed_text, *signature);
}

/// True if the member is a finite number: 1e999 is infinite once it is read.
bool IsDate(const JwtJson::Member& member) noexcept {
  return (member.kind == JwtJson::Kind::kInteger || member.kind == JwtJson::Kind::kNumber) &&
         std::isfinite(member.number);
}

/// A date that is there but is not a finite number makes the token invalid.
bool TimesHold(const JwtJson& claims, JwtVerifier::Expiry expiry, Time now_time) noexcept {
  const double now = std::chrono::duration<double>(now_time.time_since_epoch()).count();
  const JwtJson::Member* const expires = claims.Find("exp");
  if (expires == nullptr && expiry == JwtVerifier::Expiry::kRequired) return false;
  if (expires != nullptr && !(IsDate(*expires) && now < expires->number + kLeewaySeconds)) {
    return false;
  }
  const JwtJson::Member* const not_before = claims.Find("nbf");
  return not_before == nullptr ||
         (IsDate(*not_before) && now >= not_before->number - kLeewaySeconds);
}

}  // namespace

struct JwtVerifier::State {
  std::optional<JwtKey> key;  ///< Nothing: unverified.
  std::string issuer;
  std::string audience;
  Expiry expiry = Expiry::kRequired;
  const Clock* clock = nullptr;
  RealClock real_clock;

  [[nodiscard]] bool ClaimsHold(const JwtJson& claims) const noexcept {
    if (!TimesHold(claims, expiry, clock->Now())) return false;
    if (!issuer.empty()) {
      const JwtJson::Member* const said = claims.Find("iss");
      if (said == nullptr || said->kind != JwtJson::Kind::kString || said->text != issuer) {
        return false;
      }
    }
    return audience.empty() || claims.Holds("aud", audience);
  }
};

JwtVerifier::JwtVerifier(std::unique_ptr<State> state) : state_(std::move(state)) {}
JwtVerifier::~JwtVerifier() = default;

Result<std::shared_ptr<const JwtVerifier>> JwtVerifier::Make(Options options) {
  const int ways = (options.hmac_secret.empty() ? 0 : 1) +
                   (options.public_key_pem.empty() ? 0 : 1) + (options.unverified ? 1 : 0);
  if (ways != 1) {
    return Refuse(
        ErrorCode::kBadQuota,
        "jwt needs exactly one of a secret, a public key, and the word `unverified`, which "
        "believes every token");
  }
  auto state = std::make_unique<State>();
  if (!options.unverified) {
    auto key = options.hmac_secret.empty() ? JwtKey::FromPem(options.public_key_pem)
                                           : JwtKey::FromSecret(std::move(options.hmac_secret));
    if (!key) return std::unexpected(std::move(key.error()));
    state->key = std::move(*key);
  }
  state->issuer = std::move(options.issuer);
  state->audience = std::move(options.audience);
  state->expiry = options.expiry;
  state->clock = options.clock != nullptr ? options.clock : &state->real_clock;
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
} catch (...) {  // No memory: as if there were no token.
  return std::nullopt;
}

}  // namespace tidegate
