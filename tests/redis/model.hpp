// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/concurrency.hpp"
#include "core/sliding_log.hpp"
#include "redis/batch.hpp"

namespace tidegate::redis_test {

/// The stored state of one key, in the types of src/core.
struct Stored {
  Algorithm algorithm = Algorithm::kTokenBucket;
  bool exists = false;
  bool corrupt = false;  ///< The key exists but cannot be read.
  std::array<std::int64_t, 3> hash = {};
  /// The field `expires` of a hash, as docs/adr/0013 defines it; -1: unreadable.
  std::int64_t expires = 0;
  std::vector<sliding_log::Entry> log = {};
  std::vector<concurrency::Lease> leases = {};
};

/// A sequential store on top of src/core. It applies a batch as the contract of the script
/// (docs/adr/0013) describes: entry by entry, charge by charge, one plain step at a time. It shares
/// no code with the script.
class Model {
 public:
  /// Applies a batch at time `now` and returns the complete reply that the script must give.
  std::vector<std::int64_t> Apply(const Batch& batch, Time now);

  std::map<std::string, Stored> keys = {};
  std::set<std::string> used_ids = {};
  Outcome last = {};  ///< Outcome of the last step.
  /// The keys that the last batch stepped, with the time until which Redis must keep them.
  std::map<std::string, Time> recovered = {};
  /// The hashes whose TTL the last batch set, with that TTL in milliseconds.
  std::map<std::string, std::int64_t> renewed = {};

 private:
  struct Open;  ///< State of a key while a batch runs.

  Open& Touch(const std::string& key, const Quota& quota);
  Outcome Step(Open& key, const Quota& quota, const Item& item, std::int64_t count);
  [[nodiscard]] std::int64_t Admits(const Open& key, const Quota& quota, const Item& item,
                                    std::int64_t count) const;
  std::int64_t Refund(Open& key, const Quota& quota, const Item& item, const Entry& entry,
                      const std::string& id);
  std::int64_t Reset(Open& key, const Quota& quota);
  Outcome ActAlone(Open& key, const Quota& quota, const Entry& entry, const std::string& id);
  void AppendListOutcome(Open& key, const Quota& quota, const Item& item, std::int64_t admitted,
                         std::int64_t cost);
  /// Returns true if the lease of `item` is held before the entry is applied.
  [[nodiscard]] bool Holds(const Open& key, const Item& item) const;
  void RecordOutcome(Open& key, const Quota& quota, const Outcome& outcome);
  void Finish();

  Time now_{};
  std::int64_t repaired_ = 0;
  std::int64_t healed_ = 0;
  std::map<std::string, Open> open_ = {};
  std::vector<std::int64_t> answers_ = {};
};

/// Returns the lease id of src/core that stands for a lease name.
[[nodiscard]] concurrency::LeaseId LeaseOf(const std::string& text);

/// Returns the outcome of a peek at a stored key; its reset_after tells when the key has recovered.
[[nodiscard]] Outcome LookAt(const Stored& stored, const Quota& quota, Time now);

struct Model::Open {
  Stored state;          ///< State after the steps of the batch so far.
  bool existed = false;  ///< The key is in Redis and was not reset since.
  bool written = false;
  std::array<std::int64_t, 3> before = {};
  Time recovered{};
  const Quota* stepped_by = nullptr;  ///< Quota of the last step; nullptr: no step yet.
};

}  // namespace tidegate::redis_test
