// SPDX-License-Identifier: Apache-2.0
// listen: where the doors are; config_listen_tls.cpp has their TLS.
#include "rules/config_listen.hpp"

#include <charconv>

namespace tidegate {
namespace {

struct HostPort {
  std::string_view host;
  int port = -1;
};

/// Divides at the last colon outside brackets; a port of -1 where there is none.
HostPort Divide(std::string_view text) noexcept {
  HostPort divided{text};
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) return divided;
  const std::string_view digits = text.substr(colon + 1);
  int port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, port);
  if (digits.empty() || error != std::errc{} || rest != end || digits.front() == '-' ||
      (digits.front() == '0' && digits.size() > 1) || port > 65'535) {
    return divided;
  }
  return {text.substr(0, colon), port};
}

/// Checks `address:port`; `off` becomes empty.
std::optional<std::string> ReadEndpoint(const ConfigValue& value) {
  auto text = value.Text("an address and a port, as in `127.0.0.1:8081`");
  if (!text) return std::nullopt;
  if (*text == "off") return std::string{};
  const HostPort divided = Divide(*text);
  std::string_view host = divided.host;
  if (divided.port < 0 || host.empty()) {
    value.Error(
        "should be an address and a port, as in `127.0.0.1:8081`, `[::1]:8081` or, for all "
        "addresses, `0.0.0.0:8081`; or `off`");
    return std::nullopt;
  }
  if (host == "localhost") return "127.0.0.1:" + std::to_string(divided.port);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto address = Address::Parse(host);
  if (!address) {
    value.Error("`" + std::string{host} +
                "` is not an IP address; names other than `localhost` are not looked up");
    return std::nullopt;
  }
  if (bracketed != (host.find(':') != std::string_view::npos)) {
    value.Error("IPv6 addresses stand in brackets, as in `[::1]:8081`, and IPv4 without them");
    return std::nullopt;
  }
  return text;
}

struct DoorDraft {
  ListenSpec& spec;
  ConfigPlaces::Door& place;
};

using Auth = ListenSpec::Auth;
constexpr std::array<Choice<Auth>, 2> kAuthWords = {
    {{"required", Auth::kRequired}, {"open", Auth::kOpen}}};

void ReadAddress(const ConfigValue& value, DoorDraft& door) {
  door.place.at = value.at();
  const auto endpoint = ReadEndpoint(value);
  door.place.meant = !endpoint || !endpoint->empty();
  // What is wrong is told once: without an address nothing else can be.
  door.spec.address = endpoint.value_or("");
}

constexpr std::array<ConfigKey<DoorDraft>, 4> kDoorKeys = {{
    {"address", ReadAddress},
    {"proxy_protocol",
     [](const ConfigValue& v, DoorDraft& d) {
       d.place.proxy_protocol = v.at();
       Put(d.spec.proxy_protocol, v.Bool());
     }},
    {"auth",
     [](const ConfigValue& v, DoorDraft& d) {
       d.place.auth = v.at();
       Put(d.spec.auth, v.OneOf(kAuthWords));
     }},
    {"tls", [](const ConfigValue& v, DoorDraft& d) { ReadListenTls(v, d.spec, d.place); }},
}};

/// An address alone, or a map that has one.
void ReadDoor(const ConfigValue& value, ListenSpec& spec, ConfigPlaces::Door& place) {
  DoorDraft door{spec, place};
  if (!value.is_map()) return ReadAddress(value, door);
  place.meant = true;
  spec.address.clear();
  ReadSection(value, kDoorKeys, door);
  if (place.at.line > 0) return;
  place.at = value.at();
  value.Error("needs an `address`, as in `address: 127.0.0.1:8081`");
}

template <ListenSpec Config::Listen::*Spec, ConfigPlaces::Door ConfigPlaces::*Place>
void ReadDoorOf(const ConfigValue& value, ConfigDraft& draft) {
  ReadDoor(value, draft.config.listen.*Spec, draft.places.*Place);
}

void ReadGatewayDoor(const ConfigValue& value, ConfigDraft& draft) {
  ReadDoor(value, draft.config.listen.gateway, draft.places.gateway);
  const Position auth = draft.places.gateway.auth;
  if (auth.line == 0) return;
  const Where where{.parent = &value.where(), .key = "auth"};
  value.context().Error(
      auth, where,
      "the gateway has no `auth`, since whoever may reach your upstreams may ask it; remove the "
      "key, and to let in known clients only write `client_certificates: required` in its `tls`");
}

using ListenMembers = Config::Listen;
using P = ConfigPlaces;
constexpr std::array<ConfigKey<ConfigDraft>, 4> kListenKeys = {{
    {"api", ReadDoorOf<&ListenMembers::api, &P::api>},
    {"admin", ReadDoorOf<&ListenMembers::admin, &P::admin>},
    {"gateway", ReadGatewayDoor},
    {"resp", ReadDoorOf<&ListenMembers::resp, &P::resp>},
}};
constexpr std::array<AbsentKey, 1> kListenAbsent = {{{"grpc", "has no gRPC door"}}};

}  // namespace

void ReadListen(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kListenKeys, draft, kListenAbsent);
}

void AppendListenKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("listen", kListenKeys));
  sections.push_back(KeysOf("door", kDoorKeys));
  AppendListenTlsKeys(sections);
}

}  // namespace tidegate
