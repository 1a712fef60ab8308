// SPDX-License-Identifier: Apache-2.0
#include "admin/inspect.hpp"

#include <array>
#include <memory>
#include <utility>

#include "admin/json_answer.hpp"
#include "admin/json_text.hpp"
#include "admin/key_question.hpp"
#include "admin/override_json.hpp"

namespace tidegate {
namespace {

namespace json = boost::json;
using net::HttpExchange;

/// A look at a key, then at what stands there.
class Inspecting : public Call {
 public:
  Inspecting(AdminDesk& desk, HttpExchange& exchange)
      : desk_(desk),
        exchange_(exchange),
        policy_(desk.policy),
        table_(desk.overrides.table()),
        found_(exchange.memory()) {}

  std::optional<Objection> Prepare(const Question& question) {
    return ResolveKey(question, *policy_->rules, *table_, found_, exchange_.memory());
  }

  void Begin() {
    kind = Kind::kPeek;
    found_.charges.front().on_failure = OnFailure::kClosed;  // No policy can tell.
    charges = found_.charges;
    decisions = look_;
    finished = [](Call& call) noexcept { static_cast<Inspecting&>(call).OnLooked(); };
    desk_.store.Start(*this);
  }

 private:
  void OnLooked() {
    if (error) return Fail(StatusOf(error->code), error->message);
    if (look_[0].decided_by != DecidedBy::kStore && look_[0].decided_by != DecidedBy::kCache) {
      return Fail(503, "the store does not answer: nothing can be said about this key now");
    }
    desk_.stored(charges.front(), [this](Result<StoredState> state) {
      if (!state) return Fail(StatusOf(state.error().code), state.error().message);
      Finish(*state);
    });
  }

  void Fail(int status, const std::string& why) {
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): `why` may be a part of this.
    const std::string text = why;
    HttpExchange& exchange = exchange_;
    delete this;
    net::AnswerProblem(exchange, status, text);
  }

  void Finish(const StoredState& state) {
    const Charge& charge = charges.front();
    const Decision& look = look_[0];
    json::object out{{"rule", JsonText(charge.rule)},
                     {"key", JsonText(charge.identity)},
                     {"shown_as", desk_.shown_as(charge.identity)}};
    if (std::string stored = desk_.stored_as(charge); !stored.empty()) out["stored_as"] = stored;
    out["algorithm"] = JsonText(Name(charge.quota->algorithm()));
    out["limit"] = LimitText{charge.quota->limit(), charge.quota->period()}.Text();
    out["capacity"] = charge.quota->capacity();
    out["tracked"] = state.tracked;
    const auto* const said = table_->Find(charge.rule, charge.identity);
    const bool banned = said != nullptr && said->what.kind == Override::Kind::kBan;
    const bool exempt = said != nullptr && said->what.kind == Override::Kind::kAllow;
    out["cost"] = charge.cost;
    out["allowed"] = !banned && (exempt || look.allowed);
    out["remaining"] = look.remaining;
    if (look.never) {
      out["never"] = true;
    } else if (!look.allowed) {
      out["retry_after_ms"] = JsonMillis(look.retry_after);
    }
    out["reset_after_ms"] = JsonMillis(look.reset_after);
    json::array fields;
    for (const Inspection::Field& field : state.fields) {
      fields.push_back(json::object{{"name", field.name}, {"value", field.value}});
    }
    out["state"] = std::move(fields);
    out["override"] = OverrideOfKey(*table_, *found_.rules.front(), charge.identity);
    const std::string body = json::serialize(out) + "\n";
    HttpExchange& exchange = exchange_;
    delete this;
    AnswerJson(exchange, body);
  }

  AdminDesk& desk_;
  HttpExchange& exchange_;
  const std::shared_ptr<const Policy> policy_;
  const std::shared_ptr<const OverrideTable> table_;
  Charges found_;
  std::array<Decision, 1> look_;
};

}  // namespace

void InspectKey(AdminDesk& desk, HttpExchange& exchange, const Question& question) {
  auto inspecting = std::make_unique<Inspecting>(desk, exchange);
  if (const auto bad = inspecting->Prepare(question)) {
    inspecting.reset();
    return net::AnswerProblem(exchange, bad->status, bad->message, bad->pointer);
  }
  inspecting.release()->Begin();
}

}  // namespace tidegate
