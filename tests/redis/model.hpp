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

/// What is stored for one key, as src/core has it.
struct Stored {
  Algorithm algorithm = Algorithm::kTokenBucket;
  bool exists = false;
  bool corrupt = false;  ///< It exists, and cannot be read.
  std::array<std::int64_t, 3> hash = {};
  std::int64_t expires = 0;  ///< The mark of a hash, as the contract has it; -1: unreadable.
  std::vector<sliding_log::Entry> log = {};
  std::vector<concurrency::Lease> leases = {};
};

/// A sequential store over src/core, which answers a batch as the contract says: entry by entry,
/// charge by charge, one plain step at a time. It knows nothing of the script.
class Model {
 public:
  /// The whole reply that is expected.
  std::vector<std::int64_t> Apply(const Batch& batch, Time now);

  std::map<std::string, Stored> keys = {};
  std::set<std::string> used_ids = {};
  Outcome last = {};  ///< Of the last step.
  /// Keys that the last batch stepped: until then they must be kept.
  std::map<std::string, Time> recovered = {};
  /// Hashes whose TTL it set, in milliseconds.
  std::map<std::string, std::int64_t> renewed = {};

 private:
  struct Open;  ///< A key while a batch runs.

  Open& Touch(const std::string& key, const Quota& quota);
  Outcome Step(Open& key, const Quota& quota, const Item& item, std::int64_t count);
  [[nodiscard]] std::int64_t Admits(const Open& key, const Quota& quota, const Item& item,
                                    std::int64_t count) const;
  std::int64_t Refund(Open& key, const Quota& quota, const Item& item, const Entry& entry,
                      const std::string& id);
  std::int64_t Reset(Open& key, const Quota& quota);
  Outcome ActAlone(Open& key, const Quota& quota, const Entry& entry, const std::string& id);
  void Tell(Open& key, const Quota& quota, const Item& item, std::int64_t admitted,
            std::int64_t cost);
  /// Its lease lives before it is requested.
  [[nodiscard]] bool Holds(const Open& key, const Item& item) const;
  void Noted(Open& key, const Quota& quota, const Outcome& outcome);
  void Finish();

  Time now_{};
  std::int64_t repaired_ = 0;
  std::int64_t healed_ = 0;
  std::map<std::string, Open> open_ = {};
  std::vector<std::int64_t> answers_ = {};
};

/// The lease id that the model knows a lease's text by.
[[nodiscard]] concurrency::LeaseId LeaseOf(const std::string& text);

/// What a look tells of a stored key: its reset_after above all.
[[nodiscard]] Outcome LookAt(const Stored& stored, const Quota& quota, Time now);

struct Model::Open {
  Stored state;          ///< As the batch has stepped it so far.
  bool existed = false;  ///< In Redis, and not reset since.
  bool written = false;
  std::array<std::int64_t, 3> before = {};
  Time recovered{};
  const Quota* stepped_by = nullptr;  ///< The last quota that did.
};

}  // namespace tidegate::redis_test
