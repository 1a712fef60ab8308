// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "admin/admin_context.hpp"
#include "frontends/question.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

/// Tells what the store holds for one key, and what a request would get. Answers the exchange, now
/// or later.
void InspectKey(AdminContext& context, net::HttpExchange& exchange, const Question& question);

}  // namespace tidegate
