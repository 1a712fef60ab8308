// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "store/redis/batch.hpp"

namespace tidegate::redis {

/// Batches that leave for one node together: one where there are no slots, else one for each slot.
class Round {
 public:
  /// The one that may take `call`; nullptr: there is none.
  [[nodiscard]] Batch* Find(const Call& call, Slot slot, bool single) const noexcept {
    for (std::size_t at = PlaceOf(call, slot, single); places_[at] != 0; at = Next(at)) {
      Batch& batch = *batches_[places_[at] - 1u];
      if (batch.slot() != slot || batch.single() != single) continue;
      if (!single || batch.Asks(call)) return &batch;
    }
    return nullptr;
  }
  /// REQUIRES: not full. `batch` holds nothing but `call`.
  void Add(std::unique_ptr<Batch> batch, const Call& call) {
    std::size_t at = PlaceOf(call, batch->slot(), batch->single());
    while (places_[at] != 0) at = Next(at);
    batches_.push_back(std::move(batch));
    places_[at] = static_cast<std::uint8_t>(batches_.size());
  }
  /// One that was sent before, and takes nobody any more.
  void AddAgain(std::unique_ptr<Batch> batch) {
    again_ = true;
    batches_.push_back(std::move(batch));
  }

  /// Its batches have grown by so many entries.
  void Grow(std::size_t entries) noexcept { entries_ += entries; }
  /// Nothing that asks something new fits any more.
  [[nodiscard]] bool full() const noexcept {
    return again_ || entries_ >= Batch::kMostEntries ||
           (batches_.size() == 1 && batches_.front()->full());
  }
  /// Made of batches that were sent before.
  [[nodiscard]] bool again() const noexcept { return again_; }
  [[nodiscard]] std::vector<std::unique_ptr<Batch>>& batches() noexcept { return batches_; }

 private:
  static constexpr std::size_t kPlaces = 256;
  static_assert(kPlaces > Batch::kMostEntries);

  [[nodiscard]] static std::size_t Next(std::size_t at) noexcept { return (at + 1) % kPlaces; }
  [[nodiscard]] static std::size_t PlaceOf(const Call& call, Slot slot, bool single) noexcept {
    return (single ? call.record.request[0] : slot) % kPlaces;
  }

  std::vector<std::unique_ptr<Batch>> batches_;
  std::size_t entries_ = 0;
  bool again_ = false;
  std::array<std::uint8_t, kPlaces> places_{};  ///< Number of a batch, from 1.
};

}  // namespace tidegate::redis
