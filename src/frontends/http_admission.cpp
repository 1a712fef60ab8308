// SPDX-License-Identifier: Apache-2.0
#include "frontends/http_admission.hpp"

#include <optional>
#include <string_view>

#include "rules/ascii.hpp"
#include "rules/request_view.hpp"

namespace tidegate {
namespace {

constexpr std::string_view kTokenField = "x-tidegate-token";
constexpr std::string_view kAuthorization = "authorization";
constexpr std::string_view kBearer = "bearer ";

struct Shown {
  std::string_view token;
  bool twice = false;  ///< And which of them counts, nobody could say.
};

std::optional<Shown> TokenOf(const net::HttpHead& head, TokenFields fields) noexcept {
  std::optional<Shown> shown;
  for (const net::HttpField& field : head.all()) {
    std::string_view token;
    if (field.name.size() == kTokenField.size() && EqualsIgnoreCase(field.name, kTokenField)) {
      token = field.value;
    } else if (fields == TokenFields::kOwn && field.name.size() == kAuthorization.size() &&
               EqualsIgnoreCase(field.name, kAuthorization)) {
      // Another scheme is shown, too, and is wrong.
      const bool bearer = field.value.size() > kBearer.size() &&
                          EqualsIgnoreCase(field.value.substr(0, kBearer.size()), kBearer);
      token = bearer ? Trim(field.value.substr(kBearer.size())) : std::string_view{};
    } else {
      continue;
    }
    if (shown) shown->twice = true;
    if (!shown) shown = Shown{token};
  }
  return shown;
}

bool TurnAway(net::HttpExchange& exchange, Refusals& refusals, int status, std::string_view why) {
  refusals.Note(exchange.peer(), exchange.head().path,
                status == 403 ? Refusals::Why::kRights : Refusals::Why::kUnknown);
  net::AnswerProblem(exchange, status, why, {},
                     status == 401 ? "WWW-Authenticate: Bearer realm=\"tidegate\"\r\n" : "");
  return false;
}

}  // namespace

std::string CallerOf(const net::HttpExchange& exchange, const Tokens& tokens) {
  const auto shown = TokenOf(exchange.head(), TokenFields::kOwn);
  const Tokens::Token* const token = shown && !tokens.empty() ? tokens.Find(shown->token) : nullptr;
  if (token != nullptr) return token->name;
  return exchange.peer().verified ? "(certificate)" : "(loopback)";
}

bool Admit(net::HttpExchange& exchange, const Admission& admission, const Tokens& tokens,
           TokenFields fields, Rights needed, Refusals& refusals) {
  Rights rights = admission.Of(exchange.peer(), tokens);
  const int unknown = fields == TokenFields::kOwn ? 401 : 500;
  std::optional<Shown> shown;
  if (!tokens.empty()) {
    shown = TokenOf(exchange.head(), fields);
    if (shown && shown->twice) {
      return TurnAway(exchange, refusals, unknown,
                      "the request shows more than one token: send one");
    }
    if (shown) rights = Admission::Of(tokens.Find(shown->token));
    if (shown && rights == Rights::kNone) {
      return TurnAway(exchange, refusals, unknown,
                      "this token is not one of those in `access.tokens`");
    }
  }
  if (rights >= needed) return true;
  if (rights == Rights::kNone) {
    return TurnAway(exchange, refusals, unknown,
                    fields == TokenFields::kOwn
                        ? "say who asks: `Authorization: Bearer TOKEN`, with one of `access.tokens`"
                        : "say who asks: `X-Tidegate-Token: TOKEN`, with one of `access.tokens`; "
                          "the client's own Authorization is not looked at here");
  }
  if (shown) {
    return TurnAway(
        exchange, refusals, 403,
        "this token may ask and look: what gives quota back or changes something needs one "
        "that says `all`");
  }
  return TurnAway(
      exchange, refusals, 403,
      "what gives quota back or changes something is for callers on this machine, or known by "
      "a token or a certificate: set `access.tokens`");
}

}  // namespace tidegate
