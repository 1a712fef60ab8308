// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "admin/admin_desk.hpp"
#include "frontends/question.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

/// What is stored for one key, and what it comes to. Answers the exchange, now or later.
void InspectKey(AdminDesk& desk, net::HttpExchange& exchange, const Question& question);

}  // namespace tidegate
