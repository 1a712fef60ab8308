// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "limiter/redis_store.hpp"
#include "store/redis/client.hpp"
#include "store/redis/heartbeat.hpp"
#include "store/store.hpp"
#include "telemetry/exposition.hpp"

namespace tidegate {

/// Returns the metrics of the connections of all reactors to Redis, and of the fleet.
[[nodiscard]] std::vector<MetricFamily> RedisMetrics(std::span<const RedisStore* const> stores,
                                                     const redis::Fleet& fleet);

/// Returns the decisions that failure policies made instead of the store, by policy and reason.
[[nodiscard]] std::vector<MetricFamily> FailureMetrics(std::span<const RedisStore* const> stores);

/// The fields that a store holds for a key: for a log or leases, only the first hundred items.
struct StoredState {
  bool tracked = false;  ///< The store holds the key.
  std::vector<Inspection::Field> fields;
};

/// Returns the state of the charge's key.
[[nodiscard]] Result<StoredState> ReadStored(Store& store, const Charge& charge);
/// Reads the state from Redis, then calls `done`. Must be called on the client's reactor.
void ReadStored(redis::Client& client, const Charge& charge,
                std::function<void(Result<StoredState>)> done);

}  // namespace tidegate
