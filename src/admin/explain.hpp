// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "admin/admin_context.hpp"
#include "frontends/question.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

/// What would be decided about `question`, and why: which entries and rules were considered, what
/// they say, what stands in the store before and what would after. Nothing is charged. Answers the
/// exchange, now or when the store has told.
void Explain(AdminContext& context, net::HttpExchange& exchange, Question& question);

}  // namespace tidegate
