// SPDX-License-Identifier: Apache-2.0
#include "admin/admin_call.hpp"

#include <utility>

#include "store/redis/key_names.hpp"

namespace tidegate {

std::string AdminContext::StoredAs(const Charge& charge) const {
  std::string name;
  if (redis_client != nullptr) redis::KeyNames(key_prefix).AppendKey(name, charge);
  return name;
}

void AdminContext::ReadStored(const Charge& charge, std::function<void(Result<StoredState>)> done) {
  if (redis_client != nullptr) return tidegate::ReadStored(*redis_client, charge, std::move(done));
  done(tidegate::ReadStored(store, charge));
}

AdminCall::AdminCall(AdminContext& context, net::HttpExchange& exchange)
    : context_(context),
      exchange_(exchange),
      call_(context.pipeline.Begin()),
      overrides_(context.pipeline.overrides()) {}

std::optional<Objection> AdminCall::ResolveKey(const Question& question, Charges& charges) {
  const bool by_key = question.Has(Question::kKey);
  if (!question.Has(Question::kRule)) return Objection{400, "`rule` is required", "/rule"};
  if (by_key && question.Has(Question::kIdentity)) {
    return Objection{400, "give `identity` or `key`, not both", "/key"};
  }
  const RuleSet& rules = *snapshot().rules;
  const OverrideView quotas{overrides_.get(), true};
  const auto done =
      by_key ? rules.ResolveKey(question.rule, question.key, quotas, charges)
             : rules.Resolve({question.rule, question.identity, std::nullopt, question.lease},
                             quotas, charges, exchange_.memory());
  if (done) return std::nullopt;
  const bool unknown = done.error().code == ErrorCode::kUnknownRule;
  return Objection{StatusOf(done.error().code), done.error().message,
                   unknown  ? "/rule"
                   : by_key ? "/key"
                            : "/identity"};
}

void AdminCall::Answer(const boost::json::object& body) {
  net::HttpExchange& exchange = exchange_;
  const std::string text = boost::json::serialize(body) + "\n";
  delete this;  // Comes first: members use memory of the exchange, which the answer frees.
  AnswerJson(exchange, text);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): `why` may be a member of this object.
void AdminCall::Fail(int status, std::string why, std::optional<ChangeOutcome> outcome) {
  net::HttpExchange& exchange = exchange_;
  delete this;
  if (outcome) {
    return AnswerProblemWith(exchange, status, why, {{"outcome", JsonText(Name(*outcome))}});
  }
  net::AnswerProblem(exchange, status, why);
}

std::string_view Name(ChangeOutcome outcome) noexcept {
  return outcome == ChangeOutcome::kNotApplied ? "not_applied" : "unknown";
}

void AnswerProblemWith(net::HttpExchange& exchange, int status, std::string_view detail,
                       const boost::json::object& members) {
  net::OutBuffer body;
  net::WriteProblem(body, status, detail);
  body.Truncate(body.size() - 2);  // Removes the closing brace and the line break.
  body << ',' << boost::json::serialize(members).substr(1) << '\n';
  exchange.Begin(status) << "Cache-Control: no-store\r\n";
  exchange.End("application/problem+json", body.view());
}

void AnswerJson(net::HttpExchange& exchange, std::string_view body) {
  exchange.Begin(200) << "Cache-Control: no-store\r\n";
  exchange.End("application/json", body);
}

void AnswerJson(net::HttpExchange& exchange, const boost::json::object& body) {
  AnswerJson(exchange, boost::json::serialize(body) + "\n");
}

}  // namespace tidegate
