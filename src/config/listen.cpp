// SPDX-License-Identifier: Apache-2.0
// listen: the listeners, their TLS, which clients they serve; and checks of listeners together with
// tokens, client certificates and trusted proxies.
#include <array>

#include "config/pem.hpp"
#include "config/sections.hpp"

namespace tidegate {
namespace {

using Listen = Config::Listen;
using Auth = ListenSpec::Auth;
using Clients = ListenTls::Clients;
using Version = ListenTls::Version;

/// The most certificates of a listener: every reload reads and checks each of them.
constexpr std::size_t kMaxCertificates = 1'000;

constexpr auto kClientsWords = Words<Clients>(
    {{"none", Clients::kNone}, {"optional", Clients::kOptional}, {"required", Clients::kRequired}});
constexpr auto kVersionWords = Words<Version>({{"1.2", Version::kTls12}, {"1.3", Version::kTls13}});
constexpr auto kAuthWords = Words<Auth>({{"required", Auth::kRequired}, {"open", Auth::kOpen}});

constexpr auto kPairFields = Fields({
    Value<&ListenTls::Certificate::certificate_pem, ReadCertificate>(
        "certificate", kPemType, "A certificate with its chain.")
        .Otherwise("required"),
    Value<&ListenTls::Certificate::key_pem, ReadPrivateKey>(
        "key", kPemType, "The key of that certificate, without a passphrase.")
        .Otherwise("required"),
});
constexpr Section<ListenTls::Certificate> kPairSection(
    "key_pair", kPairFields,
    [](const ConfigValue& section, ListenTls::Certificate& pair) {
      CheckKeyPair(section, pair.certificate_pem, pair.key_pem, KeyPair::kRequired);
    },
    R"("required": ["certificate", "key"])");

void ReadPairs(const ConfigValue& value, ListenTls& tls) {
  if (value.is_empty_list()) {
    return value.Error(
        "names no certificate, so that no client could connect; write at least one, as in `- { "
        "certificate: file:api.pem, key: file:api.key }`");
  }
  if (value.items() > kMaxCertificates) return value.Error("names more than 1,000 certificates");
  value.EachItem([&](const ConfigValue& item) {
    ReadSection(item, kPairSection, tls.certificates.emplace_back());
  });
}

std::optional<std::string> ReadClientCrl(const ConfigValue& value) {
  auto pem = value.Secret(0, kMaxBundleFile, Secrecy::kPublic);
  if (!pem) return std::nullopt;
  if (const auto valid = CheckCrls(*pem); !valid) return value.Invalid(valid.error().message);
  if (const auto dated = CrlOutOfDate(*pem)) value.Warning(*dated);
  return pem;
}

void CheckListenTls(const ConfigValue& section, ListenTls& tls) {
  const bool has_ca = section["client_ca"].written();
  const ConfigValue clients = section["client_certificates"];
  if (!clients.written() || clients.invalid()) {
    if (has_ca) tls.clients = Clients::kRequired;
  } else if (has_ca != (tls.clients != Clients::kNone)) {
    clients.Error(
        has_ca ? "the listener requests no certificates, so that `client_ca` has no effect; write "
                 "`optional` or `required`, or remove `client_ca`"
               : "needs `client_ca`, the authorities by which clients' certificates are verified");
  }
  if (section["client_crl"].written() && !has_ca) {
    section["client_crl"].Error(
        "needs `client_ca`: without it the listener requests no certificates");
  }
}

// The schema of `min_version` allows numbers, since YAML reads 1.2 without quotes as one.

constexpr auto kListenTlsFields = Fields({
    Custom<ReadPairs>(
        "certificates",
        ValueType{
            R"({"type": "array", "minItems": 1, "maxItems": 1000, "items": {"$ref": "#/$defs/key_pair"}})",
            "a list of 1 to 1,000 maps with `certificate` and `key`", &kPairSection},
        "Certificates and their keys. A client gets the certificate for the server name that it "
        "sends (SNI), else the first.")
        .Required("needs `certificates`: a list, as in `- { certificate: file:api.pem, key: "
                  "file:api.key }`"),
    Value<&ListenTls::client_ca_pem, ReadCertificates>(
        "client_ca", kPemType, "The authorities by which clients' certificates are verified."),
    Value<&ListenTls::client_crl_pem, ReadClientCrl>(
        "client_crl", kPemType,
        "CRLs of the authorities that issue clients' certificates. A client is rejected if its "
        "certificate is revoked, or if its authority has no valid CRL here.")
        .Otherwise("revocation is not checked"),
    OneOf<&ListenTls::clients>("client_certificates", kClientsWords,
                               "Whether clients must present a certificate to be served.")
        .Otherwise("`required` if there is `client_ca`, else `none`"),
    Value<&ListenTls::min_version,
          [](const ConfigValue& v) { return v.OneOf(kVersionWords.words); }>(
        "min_version", ValueType{R"({"enum": ["1.2", "1.3", 1.2, 1.3]})", "`\"1.2\"` or `\"1.3\"`"},
        "The oldest version of TLS that is accepted.")
        .Default("1.2"),
});

constexpr ValueType kEndpointType{
    .schema = R"({"description": "address:port, [IPv6 address]:port, or off.", "type": "string"})",
    .shown = "`address:port`, `[v6]:port` or `off`",
    .name = "endpoint"};

constexpr auto kListenerFields = Fields({
    Value<&ListenSpec::address, ReadEndpoint>(
        "address", kEndpointType,
        "The address and port of the listener. No two listeners may have the same.")
        .Required("needs an `address`, as in `address: 127.0.0.1:8081`"),
    Bool<&ListenSpec::proxy_protocol>(
        "proxy_protocol",
        "Every connection begins with a PROXY header, version 1 or 2, in which a balancer sends "
        "the client's address. It is accepted from `client_ip.trusted_proxies` only; connections "
        "of others are rejected."),
    OneOf<&ListenSpec::auth>("auth", kAuthWords,
                             "Whether callers must authenticate with a token or a certificate. Not "
                             "for the gateway, whose clients need no rights.")
        .Otherwise("not on loopback addresses; on others if there are tokens or certificates"),
    Sub<&ListenSpec::tls>("tls", kListenTlsSection,
                          "The certificates of the listener, and those that clients need."),
});
constexpr Section<ListenSpec> kListenerSection("listener", kListenerFields);

/// Reads a listener: an address alone, or a map with an address.
template <ListenSpec Listen::*kMember>
void ReadListener(const ConfigValue& value, Listen& listen) {
  ListenSpec& spec = listen.*kMember;
  if (!value.is_map()) return Put(spec.address, ReadEndpoint(value));
  ReadSection(value, kListenerSection, spec);
}

void ReadGatewayListener(const ConfigValue& value, Listen& listen) {
  ReadListener<&Listen::gateway>(value, listen);
  if (!value["auth"].written()) return;
  value["auth"].Error(
      "does not apply to the gateway, which serves the clients of your upstreams; remove the key, "
      "and to admit only known clients write `client_certificates: required` in its `tls`");
}

constexpr ValueType kListenerType{
    R"({"anyOf": [{"$ref": "#/$defs/endpoint"}, {"$ref": "#/$defs/listener"}]})",
    "an address, `off` or a map", &kListenerSection, &kEndpointType};

constexpr auto kListenFields = Fields({
    Custom<ReadListener<&Listen::api>>("api", kListenerType,
                                       "Decisions and forward-auth over HTTP.")
        .Default("off"),
    Custom<ReadListener<&Listen::admin>>(
        "admin", kListenerType,
        "Health, metrics and operations. Addresses other than loopback require `access.tokens` or "
        "`client_certificates: required`.")
        .Default("off"),
    Custom<ReadGatewayListener>(
        "gateway",
        ValueType{R"({"anyOf": [{"$ref": "#/$defs/endpoint"},
        {"allOf": [{"$ref": "#/$defs/listener"}], "not": {"required": ["auth"]}}]})",
                  "an address, `off` or a map", &kListenerSection, &kEndpointType},
        "The reverse proxy; needs `routes`.")
        .Default("off"),
    Custom<ReadListener<&Listen::resp>>("resp", kListenerType, "Decisions over the Redis protocol.")
        .Default("off"),
    Absent<Listen>("grpc", "has no gRPC listener"),
});

using Severity = Problem::Severity;

/// A listener with its place in the file.
struct Listener {
  std::string_view name;
  const ListenSpec& spec;
  ConfigValue value;

  [[nodiscard]] bool off() const noexcept { return spec.off(); }
  [[nodiscard]] bool IsPublic() const noexcept {
    const auto address = Address::ParseWithPort(spec.address);
    return address && !address->IsLoopback();
  }
  /// Returns true if clients can authenticate with a certificate.
  [[nodiscard]] bool KnowsCertificates() const noexcept {
    return spec.tls && spec.tls->clients != Clients::kNone;
  }
  /// Returns true if the file requests client certificates, even if the values are invalid.
  [[nodiscard]] bool RequestsCertificates() const {
    const ConfigValue tls = value["tls"];
    return tls["client_ca"].written() || tls["client_certificates"].written();
  }
  void Report(Severity severity, std::string_view message) const {
    const ConfigValue address = value["address"];
    value.context().Add(severity, address.written() ? address.at() : value.at(), value.where(),
                        message);
  }
};

/// The number of guarded listeners, whose callers may have to authenticate.
constexpr std::size_t kGuarded = 3;
using Listeners = std::array<Listener, 4>;

/// Returns all listeners, the guarded ones first.
Listeners ListenersOf(const ConfigValue& root, const Config::Listen& listen) {
  const ConfigValue section = root["listen"];
  return {{{"api", listen.api, section["api"]},
           {"admin", listen.admin, section["admin"]},
           {"resp", listen.resp, section["resp"]},
           {"gateway", listen.gateway, section["gateway"]}}};
}

bool IsSameEndpoint(std::string_view a, std::string_view b) {
  const auto port = [](std::string_view text) { return text.substr(text.rfind(':') + 1); };
  return !a.empty() && !b.empty() && port(a) == port(b) && port(a) != "0" &&
         Address::ParseWithPort(a) == Address::ParseWithPort(b);
}

void CheckAddresses(const Listeners& listeners) {
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!IsSameEndpoint(listeners[i].spec.address, listeners[j].spec.address)) continue;
      listeners[i].Report(Severity::kError, "has the same address as " +
                                                Backticked(listeners[j].name) +
                                                "; give them different ports");
    }
  }
}

/// Returns true if tokens are configured, valid or not. An `access` section without tokens and
/// certificates counts too: its own check reports it.
bool HasTokens(const ConfigValue& root) {
  const ConfigValue access = root["access"];
  return access["tokens"].written() || (access.written() && !access["certificates"].written());
}

void CheckProxyProtocol(const Listener& listener, const ConfigValue& root) {
  if (!listener.spec.proxy_protocol || root["client_ip"]["trusted_proxies"].items() > 0) return;
  listener.value["proxy_protocol"].Error(
      "is accepted from trusted proxies only, and none are configured, so that every connection "
      "would be rejected; name your balancers, as in `client_ip: { trusted_proxies: [10.0.0.0/8] "
      "}`");
}

void CheckAdmin(const Listener& admin, const ConfigValue& root) {
  if (!admin.IsPublic()) return;
  if (admin.spec.auth == Auth::kOpen) {
    return admin.value["auth"].Error(
        "`open` would let anyone operate this server, since the address is not a loopback address; "
        "remove the key, or write `address: 127.0.0.1:9180`");
  }
  if (HasTokens(root) || (admin.spec.tls && admin.spec.tls->clients == Clients::kRequired)) return;
  admin.Report(
      Severity::kError,
      "is not a loopback address, so operators must authenticate: configure tokens with `access: { "
      "tokens: file:PATH }`, or require client certificates with `client_ca` and "
      "`client_certificates: required` in the listener's `tls`; or write `127.0.0.1:9180`");
}

void CheckAuth(const Listener& listener, const ConfigValue& root) {
  const bool certificates =
      listener.RequestsCertificates() && (!listener.spec.tls || listener.KnowsCertificates());
  if (listener.spec.auth != Auth::kRequired || HasTokens(root) || certificates) return;
  listener.value["auth"].Error(
      "no caller could authenticate, so all would be rejected: configure tokens with `access: { "
      "tokens: file:PATH }`, or request client certificates with `client_ca` in the listener's "
      "`tls`");
}

void CheckCertificates(const Listeners& listeners, const ConfigValue& certificates) {
  if (!certificates.written()) return;
  for (std::size_t i = 0; i < kGuarded; ++i) {
    if (!listeners[i].off() && listeners[i].RequestsCertificates()) return;
  }
  certificates.Error(
      "has no effect: no listener requests client certificates; set `client_ca` in the `tls` of "
      "`listen.api`, `.resp` or `.admin`, or remove the list");
}

/// Returns true if some callers must authenticate as soon as there are tokens or certificates. On
/// loopback addresses these are the clients that a local proxy announces.
bool Authenticates(const Listener& listener) noexcept {
  return !listener.off() && listener.spec.auth != Auth::kOpen &&
         (listener.spec.auth == Auth::kRequired || listener.IsPublic() ||
          listener.spec.proxy_protocol);
}

void WarnAboutOpenListener(const Listener& listener, const Config& config) {
  const std::string what =
      ": anyone who reaches it can request decisions and use up the limits of others; operations "
      "that give "
      "quota back are refused there";
  if (listener.spec.auth == Auth::kOpen) {
    listener.value["auth"].Warning("is `open` on an address that is not a loopback address" + what +
                                   ". To require the tokens of `access.tokens`, write `required`");
  } else if (config.access.tokens.empty() && !listener.KnowsCertificates()) {
    listener.Report(Severity::kWarning,
                    "is not a loopback address, and callers cannot authenticate" + what +
                        ". Give callers tokens with `access.tokens`");
  }
}

}  // namespace

constinit const Section<ListenTls> kListenTlsSection("listen_tls", kListenTlsFields,
                                                     CheckListenTls);
constinit const Section<Listen> kListenSection("listen", kListenFields);

bool IsOpened(const ConfigValue& listener) {
  if (!listener.written()) return false;
  const ConfigValue address = listener.is_map() ? listener["address"] : listener;
  return !address.IsOff();
}

void CheckListen(const ConfigValue& root, const Config& config) {
  const Listeners listeners = ListenersOf(root, config.listen);
  CheckAddresses(listeners);
  for (const Listener& listener : listeners) {
    if (!listener.off()) CheckProxyProtocol(listener, root);
  }
  for (std::size_t i = 0; i < kGuarded; ++i) {
    if (!listeners[i].off()) CheckAuth(listeners[i], root);
  }
  CheckCertificates(listeners, root["access"]["certificates"]);
  CheckAdmin(listeners[1], root);
}

void WarnAboutListen(const ConfigValue& root, const Config& config) {
  const Listeners listeners = ListenersOf(root, config.listen);
  bool authenticates = false;
  for (std::size_t i = 0; i < kGuarded; ++i) {
    const Listener& listener = listeners[i];
    authenticates = authenticates || Authenticates(listener);
    if (!listener.IsPublic()) continue;
    // CheckAdmin reports an open admin listener as an error.
    if (listener.name != "admin") WarnAboutOpenListener(listener, config);
    if (Authenticates(listener) && !config.access.tokens.empty() && !listener.spec.tls) {
      listener.Report(
          Severity::kWarning,
          "callers send their tokens unencrypted, and anyone who can read the traffic can use "
          "them; configure `tls` for this listener, or put it behind a proxy with TLS");
    }
  }
  if (!authenticates && !config.access.tokens.empty()) {
    root["access"].Warning(
        "has no effect: callers on loopback need no token. To require tokens on loopback too, "
        "write `auth: required` beside the `address` of `listen.api`, `.resp` or `.admin`");
  }
}

}  // namespace tidegate
