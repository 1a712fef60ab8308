// SPDX-License-Identifier: Apache-2.0
#include "frontends/http_access.hpp"

#include <chrono>
#include <optional>

#include "base/ascii.hpp"
#include "base/message_text.hpp"
#include "identity/address.hpp"

namespace tidegate {
namespace {

constexpr std::string_view kTokenField = "x-tidegate-token";
constexpr std::string_view kAuthorization = "authorization";
constexpr std::string_view kBearer = "bearer ";
constexpr std::string_view kContentType = "content-type";
constexpr std::string_view kContentEncoding = "content-encoding";
constexpr std::string_view kOrigin = "origin";
constexpr std::string_view kFetchSite = "sec-fetch-site";

/// Returns true if the field has this name, which must be in lower case. Most fields differ in
/// their length or their first letter, so these are compared first.
bool IsNamed(const net::HttpField& field, std::string_view name) noexcept {
  return field.name.size() == name.size() && (field.name.front() | 0x20) == name.front() &&
         EqualsIgnoreCase(field.name, name);
}

struct Presented {
  std::string_view token;
  bool several = false;  ///< There is more than one token, so it is unclear which to use.
};

std::optional<Presented> TokenOf(const net::HttpHead& head, TokenFields fields) noexcept {
  std::optional<Presented> found;
  for (const net::HttpField& field : head.all()) {
    std::string_view token;
    if (IsNamed(field, kTokenField)) {
      token = field.value;
    } else if (fields == TokenFields::kOwn && IsNamed(field, kAuthorization)) {
      // A scheme other than Bearer is treated as an unknown token.
      const bool bearer = field.value.size() > kBearer.size() &&
                          EqualsIgnoreCase(field.value.substr(0, kBearer.size()), kBearer);
      token = bearer ? Trim(field.value.substr(kBearer.size())) : std::string_view{};
    } else {
      continue;
    }
    if (found) found->several = true;
    if (!found) found = Presented{token};
  }
  return found;
}

/// Answers callers that Authorize rejects. Public methods return false, the result of Authorize.
struct Rejecter {
  /// Rejects a caller that must authenticate.
  [[nodiscard]] bool Unknown(AuthFailure::Reason reason, std::string_view why,
                             std::string_view by = {}) {
    if (const auto wait = Record(reason, by)) return Throttled(*wait);
    const bool own = fields == TokenFields::kOwn;
    net::AnswerProblem(exchange, own ? 401 : 500, why, {},
                       own ? "WWW-Authenticate: Bearer realm=\"tidegate\"\r\n" : "");
    return false;
  }

  /// Rejects a caller with insufficient rights; `by` is the name of its token or certificate.
  [[nodiscard]] bool Insufficient(std::string_view by, std::string_view why) {
    (void)Record(AuthFailure::Reason::kRights, by);
    net::AnswerProblem(exchange, 403, why);
    return false;
  }

  std::optional<std::chrono::seconds> Record(AuthFailure::Reason reason, std::string_view by) {
    AuthFailure failure{.peer = exchange.peer(),
                        .reason = reason,
                        .request = exchange.head().path,
                        .problem = reason == AuthFailure::Reason::kCertificate ? kNotListed : "",
                        .peers = PeersOf(access, exchange.peer())};
    if (!by.empty()) failure.by = by;
    return failures.Record(failure);
  }
  [[nodiscard]] bool Throttled(std::chrono::seconds wait) {
    const std::string seconds = std::to_string(wait.count());
    exchange.CloseAfterAnswer();
    net::AnswerProblem(exchange, fields == TokenFields::kOwn ? 429 : 500,
                       "too many wrong credentials from this address: wait " + seconds +
                           " s, and send one of `access.tokens`",
                       {}, "Retry-After: " + seconds + "\r\n");
    return false;
  }

  net::HttpExchange& exchange;
  const AccessControl& access;
  const TokenFields fields;
  AuthFailures& failures;
};

/// Returns true if a list of content codings has only `identity` (RFC 9110, 8.4: no coding).
bool IsIdentity(std::string_view codings) noexcept {
  bool identity = true;
  net::http1::EachElement(codings, [&identity](std::string_view coding) {
    return identity = EqualsIgnoreCase(coding, "identity");
  });
  return identity;
}

bool IsJsonType(std::string_view value) noexcept {
  if (value == "application/json") return true;
  // A value with a comma would be a list of types, which Content-Type does not allow.
  if (value.find(',') != std::string_view::npos) return false;
  const std::string_view type = value.substr(0, value.find(';'));
  return EqualsIgnoreCase(type.substr(0, type.find_last_not_of(" \t") + 1), "application/json");
}

Page PageOfOrigin(std::string_view origin, std::string_view host) noexcept {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!origin.starts_with(scheme)) continue;
    origin.remove_prefix(scheme.size());
    return EqualsIgnoreCase(origin, host) && NamesAddress(origin) ? Page::kOwn : Page::kForeign;
  }
  return Page::kForeign;
}

}  // namespace

std::string CallerName(const net::HttpExchange& exchange, const AccessControl& access) {
  const Tokens& tokens = access.tokens;
  const auto presented = TokenOf(exchange.head(), TokenFields::kOwn);
  const Tokens::Token* const token =
      presented && !tokens.empty() ? tokens.Find(presented->token) : nullptr;
  if (token != nullptr) return token->name;
  const net::Peer& peer = exchange.peer();
  return peer.verified ? access.certificates.NameOf(peer) : "(loopback)";
}

bool Authorize(net::HttpExchange& exchange, const AccessControl& access, ListenerId listener,
               TokenFields fields, Rights needed, AuthFailures& failures) {
  using Reason = AuthFailure::Reason;
  const Tokens& tokens = access.tokens;
  const AccessPolicy& policy = access.of(listener);
  const net::Peer& peer = exchange.peer();
  Rejecter reject{exchange, access, fields, failures};
  Rights rights = policy.ForPeer(peer, tokens, access.certificates);
  // On a loopback address, the admin API needs no credentials, but only for callers on this
  // machine: clients that a local proxy announces must authenticate, as on a public address.
  const bool closed = listener == ListenerId::kAdmin && policy.loopback() && !peer.verified &&
                      !policy.IsLocal(peer);
  if (closed) rights = Rights::kNone;
  const Tokens::Token* token = nullptr;
  if (!tokens.empty()) {
    const std::optional<Presented> presented = TokenOf(exchange.head(), fields);
    if (presented && presented->several) {
      return reject.Unknown(Reason::kWrong, "the request has more than one token: send one");
    }
    if (presented) {
      token = tokens.Find(presented->token);
      rights = AccessPolicy::ForToken(token);
    }
    if (presented && rights == Rights::kNone) {
      return reject.Unknown(Reason::kWrong, "unknown token: it is not in `access.tokens`");
    }
  }
  if (rights >= needed) return true;
  if (closed && tokens.empty() && !policy.certificates()) {
    return reject.Insufficient(
        {},
        "callers behind a proxy must authenticate here, and no tokens are configured: set "
        "`access.tokens`, or call from this machine without the proxy");
  }
  if (rights == Rights::kNone && peer.verified) {
    return reject.Unknown(Reason::kCertificate,
                          "unknown certificate: it is not in `access.certificates`",
                          CallerName(exchange, access));
  }
  if (rights == Rights::kNone) {
    return reject.Unknown(
        Reason::kMissing,
        fields == TokenFields::kOwn
            ? "authentication required: send `Authorization: Bearer TOKEN`, with one of "
              "`access.tokens`"
            : "authentication required: send `X-Tidegate-Token: TOKEN`, with one of "
              "`access.tokens`; the client's own Authorization is ignored here");
  }
  if (token != nullptr) {
    return reject.Insufficient(
        token->name,
        "this token has the right `ask`: giving quota back, debiting, renewing leases or changing "
        "anything needs a token with the right `all`");
  }
  if (peer.verified) {
    return reject.Insufficient(
        CallerName(exchange, access),
        "this certificate has the right `ask`: giving quota back, debiting, renewing leases or "
        "changing anything needs a certificate with `may: all`, or a token with the right `all`");
  }
  return reject.Insufficient(
      {},
      "only callers on this machine, or with a token or a client certificate, may give quota back, "
      "debit, renew leases or change anything: set `access.tokens`");
}

AuthFailure::Peers PeersOf(const AccessControl& access, const net::Peer& peer) noexcept {
  return access.clients.Trusts(Address(peer.bytes)) ? AuthFailure::Peers::kProxy
                                                    : AuthFailure::Peers::kClient;
}

bool AcceptsBody(net::HttpExchange& exchange) {
  const net::HttpField* type = nullptr;
  const net::HttpField* coding = nullptr;
  bool several = false;  // There are two Content-Type fields; programs differ in which they use.
  for (const net::HttpField& field : exchange.head().all()) {
    if (field.name.size() == kContentType.size()) {
      if (field.name != "Content-Type" && !EqualsIgnoreCase(field.name, kContentType)) continue;
      several = type != nullptr;
      type = &field;
    } else if (field.name.size() == kContentEncoding.size() &&
               EqualsIgnoreCase(field.name, kContentEncoding) && !IsIdentity(field.value)) {
      coding = &field;
    }
    if (several) break;
  }
  if (type == nullptr || several || !IsJsonType(type->value)) {
    net::AnswerProblem(exchange, 415,
                       "send JSON with `Content-Type: application/json` (curl: --json)");
    return false;
  }
  if (coding == nullptr) return true;
  net::AnswerProblem(exchange, 415,
                     "unsupported `Content-Encoding: " + Printable(coding->value) +
                         "`: send the JSON body uncompressed, without Content-Encoding",
                     {}, "Accept-Encoding: identity\r\n");
  return false;
}

bool NamesAddress(std::string_view host) noexcept {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end != std::string_view::npos && Address::Parse(host.substr(1, end - 1)).has_value();
  }
  host = host.substr(0, host.find(':'));
  return host == "127.0.0.1" || EqualsIgnoreCase(host, "localhost") ||
         Address::Parse(host).has_value();
}

Page PageOf(const net::HttpHead& head) noexcept {
  Page page = Page::kNone;
  for (const net::HttpField& field : head.all()) {
    if (IsNamed(field, kOrigin)) {
      page = PageOfOrigin(field.value, head.host);
    } else if (IsNamed(field, kFetchSite)) {
      // `none` means that a person entered the address. For `same-origin`, Origin decides.
      if (field.value != "none" && field.value != "same-origin") return Page::kForeign;
    }
    if (page == Page::kForeign) return page;
  }
  return page;
}

bool MayBeRebound(const net::HttpExchange& exchange, const AccessControl& access,
                  ListenerId listener) noexcept {
  const AccessPolicy& policy = access.of(listener);
  const std::string_view host = exchange.head().host;
  // Browsers always send Host, so a request without Host is not from a browser. Over TLS, a browser
  // would have rejected the certificate.
  if (host.empty() || exchange.peer().secure || !policy.IsLocal(exchange.peer())) return false;
  if (NamesAddress(host) || policy.Required(exchange.peer(), access.tokens)) return false;
  // A page of another site cannot know a valid token.
  const auto presented = TokenOf(exchange.head(), TokenFields::kOwn);
  return !presented || access.tokens.Find(presented->token) == nullptr;
}

}  // namespace tidegate
