// SPDX-License-Identifier: Apache-2.0
// client_ip and identity: the client's address, and the keys for secrets and tokens.
#include "config/sections.hpp"

namespace tidegate {
namespace {

using ClientIp = Config::ClientIp;
using Identity = Config::Identity;
using Jwt = Config::Jwt;

constexpr std::size_t kMinHmacKey = 16;
constexpr std::size_t kMinJwtSecret = 32;  // RFC 7518, 3.2: as long as the hash.

using Header = ClientAddressPolicy::Header;
constexpr auto kHeaders =
    Words<Header>({{"x-forwarded-for", Header::kXForwardedFor}, {"forwarded", Header::kForwarded}});

void ReadTrustedProxies(const ConfigValue& value, ClientIp& client_ip) {
  value.EachItem([&](const ConfigValue& item) {
    if (const auto network = ReadNetwork(item)) {
      client_ip.policy.trusted_proxies.push_back(*network);
    }
  });
}

constexpr auto kClientIpFields = Fields({
    Custom<ReadTrustedProxies>(
        "trusted_proxies",
        ValueType{R"({"type": "array", "items": {"type": "string"}, "default": []})",
                  "a list of addresses and networks"},
        "Addresses and networks of proxies whose forwarding header is trusted.")
        .Otherwise("none"),
    OneOf<[](auto& c) -> auto& { return c.policy.header; }, ClientIp>(
        "header", kHeaders, "The header in which the proxies send the client's address."),
    Integer<[](auto& c) -> auto& { return c.policy.hops; }, ClientIp>(
        "hops", 1, 32,
        "Take the Nth address from the right of the header, instead of the first that is not "
        "trusted.")
        .Otherwise("the first that is not trusted"),
    Integer<&ClientIp::ipv6_prefix>("ipv6_prefix", 1, 128,
                                    "How many bits of an IPv6 address identify a client; one "
                                    "customer usually has a whole /64."),
});

std::optional<std::string> ReadPublicKey(const ConfigValue& value) {
  auto pem = value.Secret(0, kMaxSecretFile, Secrecy::kPublic);
  if (!pem) return std::nullopt;
  if (pem->contains("PRIVATE KEY")) {
    return value.Invalid("holds a private key; give the public one only");
  }
  if (!pem->contains("-----BEGIN ")) {
    return value.Invalid(
        "should be a public key in PEM form, which begins with `-----BEGIN PUBLIC KEY-----`, or "
        "`file:PATH` of one");
  }
  return pem;
}

std::optional<bool> ReadUnverified(const ConfigValue& value) {
  const auto unverified = value.Bool();
  if (unverified.value_or(true)) return unverified;
  return value.Invalid("can only be `true`; to verify, give `secret` or `public_key` instead");
}

/// An empty text is an error, since it would mean the same as no text.
std::optional<std::string> ReadNotEmpty(const ConfigValue& value) {
  auto text = value.Text();
  if (text && text->empty()) return value.Invalid("is empty; leave it out to accept any");
  return text;
}

void CheckJwt(const ConfigValue& section, Jwt& jwt) {
  const int keys = static_cast<int>(section["secret"].written()) +
                   static_cast<int>(section["public_key"].written()) +
                   static_cast<int>(section["unverified"].written());
  if (keys != 1) {
    section.Error(
        "needs exactly one of `secret` (HS256 and such), `public_key` (RS256, ES256 and such) or "
        "`unverified: true` (accept every token)");
  }
  // A client that can forge an unverified token can forge its `exp` too.
  if (!section["require_exp"].written()) jwt.require_exp = !jwt.unverified;
}

constexpr auto kJwtFields = Fields({
    Value<&Jwt::hmac_secret, [](const ConfigValue& v) { return v.Secret(kMinJwtSecret); }>(
        "secret", kSecretType,
        "For HS256, HS384 and HS512; at least 32 bytes. Exactly one of `secret`, `public_key` and "
        "`unverified` is needed."),
    Value<&Jwt::public_key_pem, ReadPublicKey>("public_key", kPemType,
                                               "For RS256, RS384, RS512, ES256 and ES384."),
    Value<&Jwt::unverified, ReadUnverified>("unverified", ValueType{R"({"const": true})", "`true`"},
                                            "Accept every token without verification.")
        .Otherwise(""),
    Value<&Jwt::issuer, ReadNotEmpty>("issuer", kNotEmptyType, "The `iss` that a token must have.")
        .Otherwise("any"),
    Value<&Jwt::audience, ReadNotEmpty>("audience", kNotEmptyType,
                                        "The `aud` that a token must have.")
        .Otherwise("any"),
    Bool<&Jwt::require_exp>("require_exp",
                            "Whether a token without `exp` counts as absent, as every invalid "
                            "token does: the next source of `per` counts.")
        .Otherwise("`true`; `false` with `unverified`"),
});
constexpr Section<Jwt> kJwtSection(
    "jwt", kJwtFields, CheckJwt,
    R"("oneOf": [{"required": ["secret"]}, {"required": ["public_key"]}, {"required": ["unverified"]}])");

using DuplicateCookies = Identity::DuplicateCookies;
constexpr auto kDuplicateCookies = Words<DuplicateCookies>(
    {{"count_all", DuplicateCookies::kCountAll}, {"reject", DuplicateCookies::kReject}});

constexpr auto kIdentityFields = Fields({
    Value<&Identity::hmac_key, [](const ConfigValue& v) { return v.Secret(kMinHmacKey); }>(
        "hmac_key", kSecretType,
        "Secret identities are kept only as an HMAC under this key; at least 16 bytes.")
        .Otherwise("random per process; with Redis, one that all nodes agree on through it"),
    Sub<&Identity::jwt>("jwt", kJwtSection,
                        "How the bearer tokens that `jwt:` sources read are verified."),
    OneOf<&Identity::duplicate_cookies>(
        "duplicate_cookies", kDuplicateCookies,
        "What happens to a request in which a counted cookie has several different values: "
        "`count_all` charges each value, `reject` answers 400."),
});

}  // namespace

constinit const Section<ClientIp> kClientIpSection("client_ip", kClientIpFields);
constinit const Section<Identity> kIdentitySection("identity", kIdentityFields);

std::optional<Network> ReadNetwork(const ConfigValue& value) {
  const auto text = value.Text("an address or a network, as in `10.0.0.0/8`");
  if (!text) return std::nullopt;
  const auto network = Network::Parse(*text);
  if (!network) return value.Invalid(network.error().message);
  return *network;
}

}  // namespace tidegate
