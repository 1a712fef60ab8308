// SPDX-License-Identifier: Apache-2.0
#include "frontends/http_access.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "rules/address.hpp"
#include "rules/ascii.hpp"
#include "rules/printable.hpp"
#include "rules/request_view.hpp"

namespace tidegate {
namespace {

constexpr std::string_view kTokenField = "x-tidegate-token";
constexpr std::string_view kAuthorization = "authorization";
constexpr std::string_view kBearer = "bearer ";
constexpr std::string_view kContentType = "content-type";
constexpr std::string_view kContentEncoding = "content-encoding";
constexpr std::string_view kOrigin = "origin";
constexpr std::string_view kFetchSite = "sec-fetch-site";

struct Presented {
  std::string_view token;
  bool several = false;  ///< The request has more than one token, so it is unclear which counts.
};

std::optional<Presented> TokenOf(const net::HttpHead& head, TokenFields fields) noexcept {
  std::optional<Presented> found;
  for (const net::HttpField& field : head.all()) {
    std::string_view token;
    if (field.name.size() == kTokenField.size() && EqualsIgnoreCase(field.name, kTokenField)) {
      token = field.value;
    } else if (fields == TokenFields::kOwn && field.name.size() == kAuthorization.size() &&
               EqualsIgnoreCase(field.name, kAuthorization)) {
      // Another scheme counts as an unknown token.
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

/// Answers callers that Authorize rejects. Its public methods return false, the result of
/// Authorize.
class Rejecter {
 public:
  Rejecter(net::HttpExchange& exchange, const AccessControl& access, TokenFields fields,
           AuthFailures& failures)
      : exchange_(exchange), access_(access), fields_(fields), failures_(failures) {}

  /// Rejects a caller that must authenticate.
  [[nodiscard]] bool Unknown(AuthFailure::Reason reason, std::string_view why,
                             std::string_view by = {}) {
    if (const auto wait = Record(reason, by)) return Throttled(*wait);
    const bool own = fields_ == TokenFields::kOwn;
    net::AnswerProblem(exchange_, own ? 401 : 500, why, {},
                       own ? "WWW-Authenticate: Bearer realm=\"tidegate\"\r\n" : "");
    return false;
  }

  /// Rejects a caller whose rights are insufficient. `by` is the name of its token or certificate,
  /// if it has one.
  [[nodiscard]] bool Insufficient(std::string_view by, std::string_view why) {
    (void)Record(AuthFailure::Reason::kRights, by);
    net::AnswerProblem(exchange_, 403, why);
    return false;
  }

 private:
  std::optional<std::chrono::seconds> Record(AuthFailure::Reason reason, std::string_view by) {
    AuthFailure failure{.peer = exchange_.peer(),
                        .reason = reason,
                        .request = exchange_.head().path,
                        .problem = reason == AuthFailure::Reason::kCertificate ? kNotListed : "",
                        .peers = PeersOf(access_, exchange_.peer())};
    if (!by.empty()) failure.by = by;
    return failures_.Record(failure);
  }
  [[nodiscard]] bool Throttled(std::chrono::seconds wait) {
    const std::string seconds = std::to_string(wait.count());
    exchange_.CloseAfterAnswer();
    net::AnswerProblem(exchange_, fields_ == TokenFields::kOwn ? 429 : 500,
                       "too many wrong credentials from this address: wait " + seconds +
                           " s, and send one of `access.tokens`",
                       {}, "Retry-After: " + seconds + "\r\n");
    return false;
  }

  net::HttpExchange& exchange_;
  const AccessControl& access_;
  const TokenFields fields_;
  AuthFailures& failures_;
};

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
  Rejecter reject(exchange, access, fields, failures);
  Rights rights = policy.ForPeer(peer, tokens, access.certificates);
  // On a loopback address the admin API is open, but only to this machine: clients that a local
  // proxy announces are treated as on a public address, where it never is.
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
        "callers that a proxy announces must authenticate here, and there is nothing to "
        "authenticate with: set `access.tokens`, or call from this machine without the proxy");
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

namespace {

/// RFC 9110 section 8.4: a list of codings, of which `identity` changes nothing.
bool IsIdentity(std::string_view codings) noexcept {
  while (!codings.empty()) {
    const std::size_t end = std::min(codings.find(','), codings.size());
    const std::string_view coding = Trim(codings.substr(0, end));
    if (!coding.empty() && !EqualsIgnoreCase(coding, "identity")) return false;
    codings.remove_prefix(std::min(end + 1, codings.size()));
  }
  return true;
}

bool IsJsonType(std::string_view value) noexcept {
  if (value == "application/json") return true;
  // A comma would make it a list of types.
  if (value.find(',') != std::string_view::npos) return false;
  const std::string_view type = value.substr(0, value.find(';'));
  return EqualsIgnoreCase(type.substr(0, type.find_last_not_of(" \t") + 1), "application/json");
}

}  // namespace

bool AcceptsBody(net::HttpExchange& exchange) {
  const net::HttpField* type = nullptr;
  const net::HttpField* coding = nullptr;
  bool several = false;  // Programs disagree about which of two types counts.
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

namespace {

/// `name` is in lower case. Most fields differ in their length or their first letter.
bool IsNamed(const net::HttpField& field, std::string_view name) noexcept {
  return field.name.size() == name.size() && (field.name.front() | 0x20) == name.front() &&
         EqualsIgnoreCase(field.name, name);
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

Page PageOf(const net::HttpHead& head) noexcept {
  Page page = Page::kNone;
  for (const net::HttpField& field : head.all()) {
    if (IsNamed(field, kOrigin)) {
      page = PageOfOrigin(field.value, head.host);
    } else if (IsNamed(field, kFetchSite)) {
      // `none`: a person entered the address. `same-origin` is what Origin decides about.
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
  // Browsers always send Host. Over TLS they would have rejected the certificate.
  if (host.empty() || exchange.peer().secure || !policy.IsLocal(exchange.peer())) return false;
  if (NamesAddress(host) || policy.Required(exchange.peer(), access.tokens)) return false;
  // A page of another site does not know a token.
  const auto presented = TokenOf(exchange.head(), TokenFields::kOwn);
  return !presented || access.tokens.Find(presented->token) == nullptr;
}

}  // namespace tidegate
