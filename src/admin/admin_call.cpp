// SPDX-License-Identifier: Apache-2.0
#include "admin/admin_call.hpp"

namespace tidegate {

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
  const std::string text = boost::json::serialize(body) + "\n";
  net::HttpExchange& exchange = exchange_;
  delete this;  // First: members use the exchange's memory, which the answer frees.
  AnswerJson(exchange, text);
}

void AdminCall::Fail(int status, const std::string& why) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): `why` may be a member of this.
  const std::string text = why;
  net::HttpExchange& exchange = exchange_;
  delete this;
  net::AnswerProblem(exchange, status, text);
}

void AdminCall::Fail(int status, const std::string& why, ChangeOutcome outcome) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): `why` may be a member of this.
  const std::string text = why;
  net::HttpExchange& exchange = exchange_;
  delete this;
  AnswerFailedChange(exchange, status, text, outcome);
}

std::string_view Name(ChangeOutcome outcome) noexcept {
  return outcome == ChangeOutcome::kNotApplied ? "not_applied" : "unknown";
}

void AnswerFailedChange(net::HttpExchange& exchange, int status, std::string_view detail,
                        ChangeOutcome outcome) {
  net::OutBuffer body;
  net::WriteProblem(body, status, detail);
  body.Truncate(body.size() - 2);  // The closing brace and the line break: a member follows.
  body << R"(,"outcome":")" << Name(outcome) << "\"}\n";
  exchange.Begin(status) << "Cache-Control: no-store\r\n";
  exchange.End("application/problem+json", body.view());
}

void AnswerJson(net::HttpExchange& exchange, std::string_view body) {
  exchange.Begin(200) << "Cache-Control: no-store\r\n";
  exchange.End("application/json", body);
}

}  // namespace tidegate
