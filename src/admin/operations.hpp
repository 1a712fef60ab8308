// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "admin/admin_context.hpp"
#include "frontends/question.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

// What operators ask for with POST. Each answers the exchange, now or later.

/// Tells what would be decided about `question`, and why: which entries and rules were considered,
/// what they say, what the store holds before and would hold after. Nothing is charged.
void Explain(AdminContext& context, net::HttpExchange& exchange, Question& question);

/// Tells what the store holds for one key, and what a request would get.
void InspectKey(AdminContext& context, net::HttpExchange& exchange, const Question& question);

/// Changes a key in the store, or its override in the fleet's register. No failure policy applies:
/// either the change was made, or the operator learns that it was not, or may not have been. Every
/// change is recorded.
void ChangeKey(AdminContext& context, net::HttpExchange& exchange, const Question& question,
               AdminAction action, const std::string& by);

/// The members that the question of an action may have, and those that it must have.
struct ActionMembers {
  unsigned may = 0;
  unsigned must = 0;
};
[[nodiscard]] ActionMembers MembersOf(AdminAction action) noexcept;

}  // namespace tidegate
