// SPDX-License-Identifier: Apache-2.0
// client_ip and identity: whom to believe about who asks.
#include "rules/config_sections.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMinHmacKey = 16;
constexpr std::size_t kMinJwtSecret = 32;  // RFC 7518, 3.2: as long as the hash.

using Header = ClientAddressPolicy::Header;
constexpr std::array<Choice<Header>, 2> kHeaders = {
    {{"x-forwarded-for", Header::kXForwardedFor}, {"forwarded", Header::kForwarded}}};

void ReadTrustedProxies(const ConfigValue& value, ConfigDraft& draft) {
  value.EachItem([&](const ConfigValue& item) {
    draft.places.trusts = true;
    if (const auto network = ReadNetwork(item)) {
      draft.config.client_ip.policy.trusted_proxies.push_back(*network);
      draft.places.trusted_proxies.push_back(item.at());
    }
  });
}

constexpr std::array<ConfigKey<ConfigDraft>, 4> kClientIpKeys = {{
    {"trusted_proxies", ReadTrustedProxies},
    {"header", [](const ConfigValue& v,
                  ConfigDraft& d) { Put(d.config.client_ip.policy.header, v.OneOf(kHeaders)); }},
    {"hops",
     [](const ConfigValue& v, ConfigDraft& d) {
       d.places.hops = v.at();
       if (const auto hops = v.Integer(1, 32)) {
         d.config.client_ip.policy.hops = static_cast<int>(*hops);
       }
     }},
    {"ipv6_prefix",
     [](const ConfigValue& v, ConfigDraft& d) {
       if (const auto bits = v.Integer(1, 128)) {
         d.config.client_ip.ipv6_prefix = static_cast<int>(*bits);
       }
     }},
}};

struct JwtDraft {
  Config::Jwt jwt;
  int keys = 0;  ///< How many of secret, public_key and unverified are written, valid or not.
  std::optional<bool> require_exp;
};

void ReadPublicKey(const ConfigValue& value, JwtDraft& draft) {
  ++draft.keys;
  const auto pem = value.Secret(0, kMaxSecretFile, Secrecy::kPublic);
  if (!pem) return;
  if (pem->find("PRIVATE KEY") != std::string::npos) {
    return value.Error("holds a private key; give the public one only");
  }
  if (pem->find("-----BEGIN ") == std::string::npos) {
    return value.Error(
        "should be a public key in PEM form, which begins with `-----BEGIN PUBLIC KEY-----`, or "
        "`file:PATH` of one");
  }
  draft.jwt.public_key_pem = *pem;
}

void ReadUnverified(const ConfigValue& value, JwtDraft& draft) {
  ++draft.keys;
  const auto unverified = value.Bool();
  if (!unverified) return;
  if (!*unverified) {
    return value.Error("can only be `true`; to verify, give `secret` or `public_key` instead");
  }
  draft.jwt.unverified = true;
}

/// Empty would mean any, which is what leaving it out says.
std::string NotEmpty(const ConfigValue& value) {
  auto text = value.Text();
  if (text && text->empty()) value.Error("is empty; leave it out to accept any");
  return text.value_or(std::string{});
}

constexpr std::array<ConfigKey<JwtDraft>, 6> kJwtKeys = {{
    {"secret",
     [](const ConfigValue& v, JwtDraft& d) {
       ++d.keys;
       Put(d.jwt.hmac_secret, v.Secret(kMinJwtSecret));
     }},
    {"public_key", ReadPublicKey},
    {"unverified", ReadUnverified},
    {"issuer", [](const ConfigValue& v, JwtDraft& d) { d.jwt.issuer = NotEmpty(v); }},
    {"audience", [](const ConfigValue& v, JwtDraft& d) { d.jwt.audience = NotEmpty(v); }},
    {"require_exp", [](const ConfigValue& v, JwtDraft& d) { d.require_exp = v.Bool(); }},
}};

void ReadJwt(const ConfigValue& value, Config::Identity& identity) {
  JwtDraft draft;
  ReadSection(value, kJwtKeys, draft);
  if (value.is_map() && draft.keys != 1) {
    value.Error(
        "needs exactly one of `secret` (HS256 and such), `public_key` (RS256, ES256 and such) or "
        "`unverified: true` (believe every token)");
  }
  // A client that could forge a token that nobody verifies could forge its `exp` too, so requiring
  // one would protect nothing.
  draft.jwt.require_exp = draft.require_exp.value_or(!draft.jwt.unverified);
  identity.jwt = std::move(draft.jwt);
}

using DuplicateCookies = Config::Identity::DuplicateCookies;
constexpr std::array<Choice<DuplicateCookies>, 2> kDuplicateCookies = {
    {{"count_all", DuplicateCookies::kCountAll}, {"reject", DuplicateCookies::kReject}}};

constexpr std::array<ConfigKey<Config::Identity>, 3> kIdentityKeys = {{
    {"hmac_key",
     [](const ConfigValue& v, Config::Identity& i) { Put(i.hmac_key, v.Secret(kMinHmacKey)); }},
    {"jwt", ReadJwt},
    {"duplicate_cookies",
     [](const ConfigValue& v, Config::Identity& i) {
       Put(i.duplicate_cookies, v.OneOf(kDuplicateCookies));
     }},
}};

}  // namespace

std::optional<Network> ReadNetwork(const ConfigValue& value) {
  const auto text = value.Text("an address or a network, as in `10.0.0.0/8`");
  if (!text) return std::nullopt;
  const auto network = Network::Parse(*text);
  if (!network) {
    value.Error(network.error().message);
    return std::nullopt;
  }
  return *network;
}

void ReadClientIp(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kClientIpKeys, draft);
}

void ReadIdentity(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kIdentityKeys, draft.config.identity);
}

void AppendIdentityKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("client_ip", kClientIpKeys));
  sections.push_back(KeysOf("identity", kIdentityKeys));
  sections.push_back(KeysOf("jwt", kJwtKeys));
}

}  // namespace tidegate
