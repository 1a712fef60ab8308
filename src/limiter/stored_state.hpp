// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "store/redis/client.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// The fields that a store holds for a key. Of a log or of leases, only the first hundred items.
struct StoredState {
  bool tracked = false;  ///< The store holds the key.
  std::vector<Inspection::Field> fields;
};

/// Returns the state of the charge's key.
[[nodiscard]] Result<StoredState> ReadStored(Store& store, const Charge& charge);
/// Calls `done` when Redis has answered. Must be called on the client's reactor.
void ReadStored(redis::Client& client, const Charge& charge,
                std::function<void(Result<StoredState>)> done);

}  // namespace tidegate
