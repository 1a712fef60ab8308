// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "store/redis/client.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// The fields that a store holds for a key; of a log or of leases the first hundred items.
struct StoredState {
  bool tracked = false;
  std::vector<Inspection::Field> fields;
};

[[nodiscard]] Result<StoredState> ReadStored(Store& store, const Charge& charge);
/// Calls `done` when Redis has answered. On the client's reactor.
void ReadStored(redis::Client& client, const Charge& charge,
                std::function<void(Result<StoredState>)> done);

}  // namespace tidegate
