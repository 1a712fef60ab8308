// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "store/redis/batch.hpp"

namespace tidegate::redis {

/// Batches to use again, of one reactor.
class BatchPool {
 public:
  BatchPool(const KeyNames& names, const Fingerprinter& fingerprinter) noexcept
      : names_(names), fingerprinter_(fingerprinter) {}

  [[nodiscard]] std::unique_ptr<Batch> New(Slot slot, bool single) {
    std::unique_ptr<Batch> batch;
    if (spare_.empty()) {
      batch = std::make_unique<Batch>(names_, fingerprinter_);
    } else {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
    batch->Begin(slot, single);
    return batch;
  }
  void Give(std::unique_ptr<Batch> batch) {
    if (spare_.size() >= kKept) return;
    batch->Clear();
    spare_.push_back(std::move(batch));
  }

 private:
  /// Two rounds of a cluster's, a slot each.
  static constexpr std::size_t kKept = 2 * Batch::kMostEntries;

  const KeyNames& names_;
  const Fingerprinter& fingerprinter_;
  std::vector<std::unique_ptr<Batch>> spare_;
};

}  // namespace tidegate::redis
