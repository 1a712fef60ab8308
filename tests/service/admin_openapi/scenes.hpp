// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/admin_openapi/response_coverage.hpp"

namespace tidegate::openapi_test {

// Each function starts servers, brings them into a state, and records their responses.

// Scenes on nodes without Redis.
void EveryKindOfRule(ResponseCoverage& coverage);
void EveryKindOfOverride(ResponseCoverage& coverage);
void EveryOutcome(ResponseCoverage& coverage);
void HotKeys(ResponseCoverage& coverage);
void EveryListener(ResponseCoverage& coverage);
void Draining(ResponseCoverage& coverage);
void Reloads(ResponseCoverage& coverage);

// Scenes with rejected requests.
void BadRequests(ResponseCoverage& coverage);
void UnusualRequests(ResponseCoverage& coverage);
void BadLimits(ResponseCoverage& coverage);
void MissingCredentials(ResponseCoverage& coverage);
void TooManyRules(ResponseCoverage& coverage);
void TooManyConnections(ResponseCoverage& coverage);

// Scenes with Redis, or while a configured Redis is down.
void WithRedis(ResponseCoverage& coverage);
void FullTable(ResponseCoverage& coverage);
void RedisDies(ResponseCoverage& coverage);
void RedisNeverStarts(ResponseCoverage& coverage);

}  // namespace tidegate::openapi_test
