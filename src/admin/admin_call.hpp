// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "admin/admin_context.hpp"
#include "decision/decision_call.hpp"
#include "frontends/question.hpp"
#include "frontends/resolve.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

/// Whether a failed change may have been applied; the member `outcome` of the problem document.
enum class ChangeOutcome : std::uint8_t {
  kNotApplied,  ///< Certainly not carried out: it was not sent to the store, or was refused.
  kUnknown,     ///< It was sent, and the store did not answer.
};

[[nodiscard]] std::string_view Name(ChangeOutcome outcome) noexcept;  ///< As in the problem.

/// Answers a change that failed with a problem.
void AnswerFailedChange(net::HttpExchange& exchange, int status, std::string_view detail,
                        ChangeOutcome outcome);

/// One request of an operator in progress. Owns itself: Answer and Fail answer the exchange and
/// delete the AdminCall.
class AdminCall : protected DecisionListener {
 public:
  AdminCall(AdminContext& context, net::HttpExchange& exchange);
  virtual ~AdminCall() { call_.Drop(); }
  AdminCall(const AdminCall&) = delete;
  AdminCall& operator=(const AdminCall&) = delete;

 protected:
  /// Adds the charge of the one key that an operator names: `rule` with `identity`, or with `key`,
  /// the key as reports show it. Uses the quota in force.
  [[nodiscard]] std::optional<Objection> ResolveKey(const Question& question, Charges& charges);
  void Answer(const boost::json::object& body);
  void Fail(int status, const std::string& why);
  void Fail(int status, const std::string& why, ChangeOutcome outcome);
  [[nodiscard]] const Snapshot& snapshot() const noexcept { return call_.snapshot(); }

  AdminContext& context_;
  net::HttpExchange& exchange_;
  DecisionCall& call_;
  const std::shared_ptr<const OverrideTable> overrides_;  ///< The table when the request began.
};

/// Begins the request that `question` describes, or answers with the objection of Prepare. T is an
/// AdminCall with Prepare(question), which returns an optional Objection, and Begin().
template <class T, class Body, class... Args>
void BeginAdminCall(AdminContext& context, net::HttpExchange& exchange, Body& question,
                    Args&&... args) {
  auto call = std::make_unique<T>(context, exchange, std::forward<Args>(args)...);
  if (const auto bad = call->Prepare(question)) {
    call.reset();
    return net::AnswerProblem(exchange, bad->status, bad->message, bad->pointer);
  }
  call.release()->Begin();
}

/// Answers with 200 and JSON that must not be cached.
void AnswerJson(net::HttpExchange& exchange, std::string_view body);

[[nodiscard]] inline boost::json::string JsonText(std::string_view text) {
  return boost::json::string(text.data(), text.size());
}

/// Returns whole milliseconds, rounded up, as everywhere in the API.
[[nodiscard]] inline std::int64_t JsonMillis(Micros duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration).count();
}

}  // namespace tidegate
