// SPDX-License-Identifier: Apache-2.0
// What of doors, tokens and trusted proxies does not fit together.
#include "rules/config_listen.hpp"

namespace tidegate {
namespace {

using Auth = ListenSpec::Auth;
using Severity = Problem::Severity;

/// A door with its name and its place.
struct Door {
  std::string_view name;
  const ListenSpec& spec;
  const ConfigPlaces::Door& place;

  [[nodiscard]] bool off() const noexcept { return spec.off(); }
  [[nodiscard]] bool IsPublic() const noexcept {
    const auto address = Address::ParseWithPort(spec.address);
    return address && !address->IsLoopback();
  }
  [[nodiscard]] bool HasClients(ListenTls::Clients clients) const noexcept {
    return spec.tls && spec.tls->clients == clients;
  }
  /// Who shows a certificate is known by it.
  [[nodiscard]] bool KnowsCertificates() const noexcept {
    return spec.tls && spec.tls->clients != ListenTls::Clients::kNone;
  }
  [[nodiscard]] std::string Text(std::string_view key = {}) const {
    return "listen." + std::string{name} + (key.empty() ? "" : "." + std::string{key});
  }
};

using Doors = std::array<Door, 4>;
Doors DoorsOf(const Config& config, const ConfigPlaces& places) noexcept {
  const Config::Listen& listen = config.listen;
  return {{{"api", listen.api, places.api},
           {"admin", listen.admin, places.admin},
           {"resp", listen.resp, places.resp},
           {"gateway", listen.gateway, places.gateway}}};
}
/// Those that may ask who calls.
constexpr std::size_t kGuarded = 3;

bool IsSameEndpoint(std::string_view a, std::string_view b) {
  const auto port = [](std::string_view text) { return text.substr(text.rfind(':') + 1); };
  return !a.empty() && !b.empty() && port(a) == port(b) && port(a) != "0" &&
         Address::ParseWithPort(a) == Address::ParseWithPort(b);
}

void CheckAddresses(const Doors& doors, ReadContext& context) {
  for (std::size_t i = 0; i < doors.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!IsSameEndpoint(doors[i].spec.address, doors[j].spec.address)) continue;
      // One of them may be where it is by default.
      const Position at = doors[i].place.at.line > 0 ? doors[i].place.at : doors[j].place.at;
      context.Add(Severity::kError, at, "listen",
                  Ticked(doors[i].name) + " and " + Ticked(doors[j].name) +
                      " have the same address; give them different ports");
    }
  }
}

/// True if tokens are configured, valid or not. Problems of `access` itself are reported there, so
/// an empty section counts too.
bool HasTokens(const ConfigPlaces& places) noexcept {
  return places.access_tokens.line > 0 ||
         (places.access.line > 0 && places.access_certificates.line == 0);
}

void CheckProxyProtocol(const Door& door, const ConfigPlaces& places, ReadContext& context) {
  if (!door.spec.proxy_protocol || places.trusts) return;
  context.Add(Severity::kError, door.place.proxy_protocol, door.Text("proxy_protocol"),
              "is believed from trusted proxies only, and there are none, so that every connection "
              "would be refused; name your balancers, as in `client_ip: { trusted_proxies: "
              "[10.0.0.0/8] }`");
}

void CheckAdmin(const Door& admin, const ConfigPlaces& places, ReadContext& context) {
  if (!admin.IsPublic()) return;
  if (admin.spec.auth == Auth::kOpen) {
    return context.Add(Severity::kError, admin.place.auth, admin.Text("auth"),
                       "`open` would let everybody operate this server, since the address is not a "
                       "loopback address; remove the key, or write `address: 127.0.0.1:9180`");
  }
  if (HasTokens(places) || admin.HasClients(ListenTls::Clients::kRequired)) return;
  context.Add(Severity::kError, admin.place.at, admin.Text(),
              "is not a loopback address, and nothing guards it: give operators tokens with "
              "`access: { tokens: file:PATH }`, or ask for their certificates with `client_ca` and "
              "`client_certificates: required` in its `tls`; or write `127.0.0.1:9180`");
}

void CheckAuth(const Door& door, const ConfigPlaces& places, ReadContext& context) {
  const bool certificates =
      door.place.client_certificates && (!door.spec.tls || door.KnowsCertificates());
  if (door.spec.auth != Auth::kRequired || HasTokens(places) || certificates) return;
  context.Add(
      Severity::kError, door.place.auth, door.Text("auth"),
      "there is nothing to know callers by, so that all would be refused: give them tokens "
      "with `access: { tokens: file:PATH }`, or ask for their certificates with `client_ca` "
      "in the door's `tls`");
}

void CheckCertificates(const Doors& doors, const ConfigPlaces& places, ReadContext& context) {
  if (places.access_certificates.line == 0) return;
  for (std::size_t i = 0; i < kGuarded; ++i) {
    if (!doors[i].off() && doors[i].place.client_certificates) return;
  }
  context.Add(
      Severity::kError, places.access_certificates, "access.certificates",
      "has no effect: no listener asks its callers for certificates; set `client_ca` in the "
      "`tls` of `listen.api`, `.resp` or `.admin`, or remove the list");
}

/// True if some callers must authenticate, given something to authenticate with. On loopback these
/// are the clients that a local proxy announces.
bool Asks(const Door& door) noexcept {
  return !door.off() && door.spec.auth != Auth::kOpen &&
         (door.spec.auth == Auth::kRequired || door.IsPublic() || door.spec.proxy_protocol);
}

void WarnAboutStrangers(const Door& door, const Config& config, ReadContext& context) {
  constexpr std::string_view kWhat =
      ": whoever reaches it may ask, and use up others' limits; operations that give quota back "
      "are refused there";
  if (door.spec.auth == Auth::kOpen) {
    context.Add(Severity::kWarning, door.place.auth, door.Text("auth"),
                "is `open` on an address that is not a loopback address" + std::string{kWhat} +
                    ". To ask for the tokens of `access.tokens`, write `required`");
  } else if (config.access.tokens.empty() && !door.KnowsCertificates()) {
    context.Add(Severity::kWarning, door.place.at, door.Text(),
                "is not a loopback address, and there is nothing to know callers by" +
                    std::string{kWhat} + ". Give callers tokens with `access.tokens`");
  }
}

}  // namespace

void CheckListen(const ConfigDraft& draft, ReadContext& context) {
  const ConfigPlaces& places = draft.places;
  const Doors doors = DoorsOf(draft.config, places);
  CheckAddresses(doors, context);
  for (const Door& door : doors) {
    if (!door.off()) CheckProxyProtocol(door, places, context);
  }
  for (std::size_t i = 0; i < kGuarded; ++i) {
    if (!doors[i].off()) CheckAuth(doors[i], places, context);
  }
  CheckCertificates(doors, places, context);
  const Door admin{"admin", draft.config.listen.admin, places.admin};
  CheckAdmin(admin, places, context);
}

void WarnAboutListen(const Config& config, const ConfigPlaces& places, ReadContext& context) {
  const Doors doors = DoorsOf(config, places);
  bool any_asks = false;
  for (std::size_t i = 0; i < kGuarded; ++i) {
    const Door& door = doors[i];
    any_asks = any_asks || Asks(door);
    if (!door.IsPublic()) continue;
    // What admin may not do is an error.
    if (door.name != "admin") WarnAboutStrangers(door, config, context);
    if (Asks(door) && !config.access.tokens.empty() && !door.spec.tls) {
      context.Add(Severity::kWarning, door.place.at, door.Text(),
                  "tokens travel to it in the clear, and whoever sees one may use it; give it "
                  "`tls`, or put it behind something that has it");
    }
  }
  if (!any_asks && !config.access.tokens.empty()) {
    context.Add(Severity::kWarning, places.access, "access",
                "has no effect: callers on loopback need no token. To ask them too, write `auth: "
                "required` beside the `address` of `listen.api`, `.resp` or `.admin`");
  }
}

}  // namespace tidegate
