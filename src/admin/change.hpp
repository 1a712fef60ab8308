// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "admin/admin_context.hpp"
#include "frontends/question.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

/// Carries out what an operator asks for: on the key in the store, or in the fleet's register. It
/// never falls to a failure policy: either it was done, or the operator is told that it was not, or
/// may not have been. Answers the exchange, now or later; every change is written down.
void ChangeKey(AdminContext& context, net::HttpExchange& exchange, const Question& question,
               AdminAction action, const std::string& by);

/// The members of a question that an action takes, and of these the ones it needs.
struct ActionMembers {
  unsigned may = 0;
  unsigned must = 0;
};
[[nodiscard]] ActionMembers MembersOf(AdminAction action) noexcept;

}  // namespace tidegate
