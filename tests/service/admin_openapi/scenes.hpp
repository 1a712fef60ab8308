// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/admin_openapi/witness.hpp"

namespace tidegate::openapi_test {

// Each starts servers, brings them into some state and asks.

// On nodes of their own.
void EveryKindOfRule(Witness& witness);
void EveryKindOfOverride(Witness& witness);
void EveryOutcome(Witness& witness);
void HotKeys(Witness& witness);
void EveryListener(Witness& witness);
void OnItsWayOut(Witness& witness);
void Reloads(Witness& witness);

// Rejected requests.
void BadRequests(Witness& witness);
void OddQuestions(Witness& witness);
void BadLimits(Witness& witness);
void MissingCredentials(Witness& witness);
void TooManyRules(Witness& witness);
void TooManyConnections(Witness& witness);

// With a Redis, or without the one that there should be.
void WithRedis(Witness& witness);
void FullTable(Witness& witness);
void RedisGone(Witness& witness);
void RedisNeverThere(Witness& witness);

}  // namespace tidegate::openapi_test
