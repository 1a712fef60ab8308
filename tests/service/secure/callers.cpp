// SPDX-License-Identifier: Apache-2.0
#include "service/secure/callers.hpp"

namespace tidegate::service {

using Auth = ListenSpec::Auth;

std::string_view TokenOf(Caller caller) {
  switch (caller) {
    case Caller::kWrong: return kWrongToken;
    case Caller::kAsk: return kAskToken;
    case Caller::kAll: return kAllToken;
    case Caller::kNone:
    case Caller::kCertificate: break;
  }
  return {};
}

std::ostream& operator<<(std::ostream& out, Caller caller) {
  constexpr std::array<std::string_view, 5> kNames{"no credentials", "a wrong token", "ask", "all",
                                                   "a certificate"};
  return out << kNames[static_cast<std::size_t>(caller)];
}

std::vector<Place> Place::All() {
  std::vector<Place> all;
  for (const bool loopback : {true, false}) {
    for (const bool tokens : {false, true}) {
      for (const bool certificates : {false, true}) {
        for (const Auth auth : {Auth::kByAddress, Auth::kRequired, Auth::kOpen}) {
          all.push_back({loopback, tokens, certificates, auth});
        }
      }
    }
  }
  return all;
}

void Place::Apply(Config& config, ListenerId listener) const {
  static const ListenTls kTls = TlsWithClients(ListenTls::Clients::kOptional);
  ListenSpec& spec = SpecOf(config, listener);
  spec.address = loopback ? "127.0.0.1:0" : "0.0.0.0:0";
  spec.auth = auth;
  if (certificates) spec.tls = kTls;
  if (tokens) config.access.tokens = BothTokens();
}

std::unique_ptr<test::Stream> Place::Connect(Service& service, ListenerId listener,
                                             Caller caller) const {
  if (!certificates) return std::make_unique<test::Stream>(At(service, listener));
  static const behaviour::Credentials kOwn = Ours().Issue("client", "DNS:client");
  TlsOptions options;
  if (caller == Caller::kCertificate) options.own = kOwn;
  return std::make_unique<TlsStream>(At(service, listener), options);
}

std::ostream& operator<<(std::ostream& out, const Place& place) {
  constexpr std::array<std::string_view, 3> kAuth{"by address", "required", "open"};
  return out << (place.loopback ? "loopback" : "public") << (place.tokens ? ", tokens" : "")
             << (place.certificates ? ", certificates" : "") << ", "
             << kAuth[static_cast<std::size_t>(place.auth)];
}

Outcome Expected(const Place& place, Caller caller, Operation operation) {
  // An authenticated caller has the rights of its certificate or its token.
  if (caller == Caller::kCertificate) return Outcome::kServed;
  if (place.tokens) {
    if (caller == Caller::kWrong) return Outcome::kUnknown;
    if (caller == Caller::kAll) return Outcome::kServed;
    if (caller == Caller::kAsk) {
      return operation == Operation::kDecide ? Outcome::kServed : Outcome::kMayNot;
    }
  }
  // The caller has no credentials, or presents a token while no tokens are configured.
  const bool credentials_configured = place.tokens || place.certificates;
  const bool required =
      place.auth == Auth::kRequired ||
      (place.auth == Auth::kByAddress && !place.loopback && credentials_configured);
  if (required) return Outcome::kUnknown;
  return place.loopback || operation == Operation::kDecide ? Outcome::kServed : Outcome::kMayNot;
}

std::vector<TokenSpec> BothTokens() {
  return {{.name = "shop", .secret = std::string(kAskToken), .may = TokenSpec::May::kAsk},
          {.name = "ops", .secret = std::string(kAllToken), .may = TokenSpec::May::kAll}};
}

}  // namespace tidegate::service
