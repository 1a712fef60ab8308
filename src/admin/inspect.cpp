// SPDX-License-Identifier: Apache-2.0
#include "admin/operations.hpp"

#include <utility>

#include "admin/admin_call.hpp"
#include "admin/override_json.hpp"
#include "rules/limit_text.hpp"

namespace tidegate {
namespace {

namespace json = boost::json;

/// Peeks at a key, then reads the fields that the store holds for it.
class Inspecting final : public AdminCall {
 public:
  using AdminCall::AdminCall;

  std::optional<Objection> Prepare(const Question& question) {
    return ResolveKey(question, call_.matched);
  }

  void Begin() {
    call_.kind = Call::Kind::kPeek;
    call_.matched.charges.front().on_failure = OnFailure::kClosed;  // Only the store knows a key.
    call_.Start(this);
  }

 private:
  void OnDecided(DecisionCall& call) noexcept override {
    if (call.error) return Fail(StatusOf(call.error->code), call.error->message);
    if (!IsCounted(call.decisions.front())) {
      return Fail(503, "the store does not answer: the state of this key is unknown");
    }
    context_.read_stored(call.charges.front(), [this](Result<StoredState> state) {
      if (!state) return Fail(StatusOf(state.error().code), state.error().message);
      Finish(*state);
    });
  }

  void Finish(const StoredState& state) {
    const Charge& charge = call_.charges.front();
    const Decision& look = call_.decisions.front();
    json::object out{{"rule", JsonText(charge.rule)},
                     {"key", JsonText(charge.identity)},
                     {"shown_as", snapshot().rules->identifier().Veiled(charge.identity)}};
    if (std::string stored = context_.stored_as(charge); !stored.empty()) out["stored_as"] = stored;
    out["algorithm"] = JsonText(Name(charge.quota->algorithm()));
    const Rule& rule = *call_.matched.rules.front();
    out["limit"] = rule.LimitOf(*charge.quota);
    out["quota"] = rule.TextOf(*charge.quota);
    out["capacity"] = charge.quota->capacity();
    out["tracked"] = state.tracked;
    const auto* const said = overrides_->Find(charge.rule, charge.identity);
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
    out["override"] = OverrideOfKey(*overrides_, rule, charge.identity);
    Answer(out);
  }
};

}  // namespace

void InspectKey(AdminContext& context, net::HttpExchange& exchange, const Question& question) {
  BeginAdminCall<Inspecting>(context, exchange, question);
}

}  // namespace tidegate
