// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/quota_scale.hpp"
#include "redis/msgpack.hpp"
#include "tidegate/quota.hpp"

namespace tidegate::redis_test {

enum Op : std::int64_t { kApply = 1, kLook, kDebit, kRefund, kReset, kRenew, kRelease };

/// One charge of an entry: the indexes of its key and quota in the batch, counted from 0.
struct Item {
  std::size_t key = 0;
  std::size_t quota = 0;
  std::int64_t cost = 1;
  std::int64_t mode = 0;
  /// Lease id; only for a concurrency quota. Empty for a peek or a reset of all leases.
  std::string lease = {};
};

struct Entry {
  std::int64_t op = kApply;
  std::int64_t count = 1;
  std::vector<Item> items = {};
  std::size_t id = 0;  ///< For a refund only: index of the refund id among `keys`.
  std::int64_t since = 0;
  std::int64_t value = 0;
};

inline std::int64_t Places(std::size_t place) { return static_cast<std::int64_t>(place) + 1; }

/// The input of one call of the batch script.
struct Batch {
  std::vector<std::string> keys = {};
  std::vector<Quota> quotas = {};
  std::vector<Entry> entries = {};
  std::string channel = {};

  [[nodiscard]] std::vector<std::int64_t> Numbers(std::vector<std::string>& leases) const {
    std::vector<std::int64_t> n = {2, static_cast<std::int64_t>(quotas.size())};
    for (const Quota& q : quotas) {
      const bool window = q.algorithm() == Algorithm::kSlidingWindow;
      n.insert(n.end(),
               {static_cast<std::int64_t>(q.algorithm()), q.limit(), q.period().count(),
                q.capacity(), q.recovery().count(), window ? Slice(q).count() : GrainsPerTick(q),
                window ? Slices(q) : GrainsPerUnit(q), Saturation(q),
                static_cast<std::int64_t>(q.origin())});
    }
    n.push_back(static_cast<std::int64_t>(entries.size()));
    for (const Entry& entry : entries) {
      n.insert(n.end(), {entry.op, entry.count, static_cast<std::int64_t>(entry.items.size())});
      for (const Item& item : entry.items) {
        n.insert(n.end(), {Places(item.key), Places(item.quota), item.cost, item.mode});
        if (quotas[item.quota].algorithm() != Algorithm::kConcurrency) continue;
        if (item.lease.empty()) {
          n.push_back(0);
        } else {
          leases.push_back(item.lease);
          n.push_back(static_cast<std::int64_t>(leases.size()) + 2);
        }
      }
      if (entry.op == kDebit) n.push_back(quotas[entry.items[0].quota].max_debt());
      if (entry.op == kRefund) n.insert(n.end(), {Places(entry.id), entry.since, entry.value});
    }
    return n;
  }

  /// Returns the arguments that follow the script in EVAL or EVALSHA.
  [[nodiscard]] std::vector<std::string> Arguments() const {
    std::vector<std::string> leases;
    const std::string packed = Pack(Numbers(leases));
    std::vector<std::string> arguments = {std::to_string(keys.size())};
    arguments.insert(arguments.end(), keys.begin(), keys.end());
    arguments.push_back(packed);
    arguments.push_back(channel);
    arguments.insert(arguments.end(), leases.begin(), leases.end());
    return arguments;
  }
};

}  // namespace tidegate::redis_test
