// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "admin/admin_context.hpp"
#include "frontends/question.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

// The POST operations of the admin API. Each answers the exchange, now or later.

/// Answers which decision a request would get, and why: the entries and rules that were considered,
/// their outcome, and the state in the store before and after. Charges nothing.
void Explain(AdminContext& context, net::HttpExchange& exchange, Question& question);

/// Answers with the state that the store holds for one key, and the decision of a peek.
void InspectKey(AdminContext& context, net::HttpExchange& exchange, const Question& question);

/// Changes a key in the store, or its override in the fleet's register. No failure policy applies:
/// the answer says that the change was made, or that it was not, or that it may not have been.
/// Every change is recorded in the audit log.
void ChangeKey(AdminContext& context, net::HttpExchange& exchange, const Question& question,
               AdminAction action, const std::string& by);

/// The members that the body of an action may have, and those that it must have.
struct ActionMembers {
  unsigned may = 0;
  unsigned must = 0;
};
[[nodiscard]] ActionMembers MembersOf(AdminAction action) noexcept;

}  // namespace tidegate
