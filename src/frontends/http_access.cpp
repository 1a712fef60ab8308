// SPDX-License-Identifier: Apache-2.0
#include "frontends/http_access.hpp"

#include <optional>
#include <string_view>

#include "rules/address.hpp"
#include "rules/ascii.hpp"
#include "rules/request_view.hpp"

namespace tidegate {
namespace {

constexpr std::string_view kTokenField = "x-tidegate-token";
constexpr std::string_view kAuthorization = "authorization";
constexpr std::string_view kBearer = "bearer ";

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

bool Reject(net::HttpExchange& exchange, Refusals& refusals, int status, std::string_view why) {
  refusals.Note(exchange.peer(), exchange.head().path,
                status == 403 ? Refusals::Why::kRights : Refusals::Why::kUnknown);
  net::AnswerProblem(exchange, status, why, {},
                     status == 401 ? "WWW-Authenticate: Bearer realm=\"tidegate\"\r\n" : "");
  return false;
}

}  // namespace

std::string CallerName(const net::HttpExchange& exchange, const Tokens& tokens) {
  const auto presented = TokenOf(exchange.head(), TokenFields::kOwn);
  const Tokens::Token* const token =
      presented && !tokens.empty() ? tokens.Find(presented->token) : nullptr;
  if (token != nullptr) return token->name;
  return exchange.peer().verified ? "(certificate)" : "(loopback)";
}

bool Authorize(net::HttpExchange& exchange, const AccessControl& access, ListenerId listener,
               TokenFields fields, Rights needed, Refusals& refusals) {
  const Tokens& tokens = access.tokens;
  Rights rights = access.of(listener).ForPeer(exchange.peer(), tokens);
  const int unknown = fields == TokenFields::kOwn ? 401 : 500;
  std::optional<Presented> presented;
  if (!tokens.empty()) {
    presented = TokenOf(exchange.head(), fields);
    if (presented && presented->several) {
      return Reject(exchange, refusals, unknown, "the request has more than one token: send one");
    }
    if (presented) rights = AccessPolicy::ForToken(tokens.Find(presented->token));
    if (presented && rights == Rights::kNone) {
      return Reject(exchange, refusals, unknown, "unknown token: it is not in `access.tokens`");
    }
  }
  if (rights >= needed) return true;
  if (rights == Rights::kNone) {
    return Reject(exchange, refusals, unknown,
                  fields == TokenFields::kOwn
                      ? "authentication required: send `Authorization: Bearer TOKEN`, with one of "
                        "`access.tokens`"
                      : "authentication required: send `X-Tidegate-Token: TOKEN`, with one of "
                        "`access.tokens`; the client's own Authorization is ignored here");
  }
  if (presented) {
    return Reject(exchange, refusals, 403,
                  "this token has the right `ask`: giving quota back or changing anything needs a "
                  "token with the right `all`");
  }
  return Reject(exchange, refusals, 403,
                "only callers on this machine, or with a token or a client certificate, may give "
                "quota back or change anything: set `access.tokens`");
}

bool IsJson(const net::HttpHead& head) noexcept {
  for (const net::HttpField& field : head.all()) {
    if (field.name != "Content-Type" && !EqualsIgnoreCase(field.name, "content-type")) continue;
    if (field.value == "application/json") return true;
    const std::string_view type = field.value.substr(0, field.value.find(';'));
    return EqualsIgnoreCase(type.substr(0, type.find_last_not_of(" \t") + 1), "application/json");
  }
  return false;
}

bool NamesAddress(std::string_view host) noexcept {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end != std::string_view::npos && Address::Parse(host.substr(1, end - 1)).has_value();
  }
  host = host.substr(0, host.find(':'));
  return EqualsIgnoreCase(host, "localhost") || Address::Parse(host).has_value();
}

Page PageOf(const net::HttpHead& head) noexcept {
  for (const net::HttpField& field : head.all()) {
    if (field.name.size() != 6 || !EqualsIgnoreCase(field.name, "origin")) continue;
    std::string_view origin = field.value;
    for (const std::string_view scheme : {"http://", "https://"}) {
      if (origin.starts_with(scheme)) {
        origin.remove_prefix(scheme.size());
        return EqualsIgnoreCase(origin, head.host) && NamesAddress(origin) ? Page::kOwn
                                                                           : Page::kForeign;
      }
    }
    return Page::kForeign;
  }
  return Page::kNone;
}

}  // namespace tidegate
