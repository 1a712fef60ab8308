// SPDX-License-Identifier: Apache-2.0
#include "telemetry/hot_sketch.hpp"

#include <algorithm>
#include <bit>

namespace tidegate {

HotSketch::HotSketch(std::size_t places)
    : sets_(std::bit_ceil(std::max(places, kWays)) / kWays),
      named_(sets_.size()),
      rest_(sets_.size() * kWays),
      mask_(sets_.size() - 1) {
  for (Place& place : rest_) place.identity.reserve(kShortName);
}

std::uint64_t HotSketch::Smallest(const Set& set) noexcept {
  return *std::min_element(set.count.begin(), set.count.end());
}

void HotSketch::Replace(Set& set, const SketchKey& key, std::uint64_t weight) noexcept {
  unsigned least = 0;
  for (unsigned way = 1; way < kWays; ++way) {
    if (set.count[way] < set.count[least]) least = way;
  }
  const std::uint64_t error = set.count[least];
  set.fingerprint[least] = key.fingerprint;
  set.count[least] = error + weight;
  const std::size_t number = key.fingerprint & mask_;
  rest_[number * kWays + least].error = error;
  if (weight > error) {
    SetName(key, least);
  } else {
    named_[number] = static_cast<std::uint8_t>(named_[number] & ~(1u << least));
  }
}

void HotSketch::SetName(const SketchKey& key, unsigned way) noexcept {
  const std::size_t number = key.fingerprint & mask_;
  named_[number] = static_cast<std::uint8_t>(named_[number] | (1u << way));
  Place& place = rest_[number * kWays + way];
  place.slot = key.slot;
  place.identity.assign(key.identity);
}

void HotSketch::Clear() noexcept {
  std::fill(sets_.begin(), sets_.end(), Set{});
  std::fill(named_.begin(), named_.end(), std::uint8_t{0});
  total_ = 0;
}

void HotSketch::CopyFrom(const HotSketch& other) {
  std::copy(other.sets_.begin(), other.sets_.end(), sets_.begin());
  std::copy(other.named_.begin(), other.named_.end(), named_.begin());
  std::copy(other.rest_.begin(), other.rest_.end(), rest_.begin());
  total_ = other.total_;
}

HotSketch::Known HotSketch::Look(std::uint64_t fingerprint) const noexcept {
  const std::size_t number = fingerprint & mask_;
  const Set& set = sets_[number];
  const unsigned found = Find(set, fingerprint);
  if (found == 0) {
    const std::uint64_t bound = Smallest(set);
    return {.count = bound, .error = bound};
  }
  const auto way = static_cast<unsigned>(std::countr_zero(found));
  const Place& place = rest_[number * kWays + way];
  return {.count = set.count[way],
          .error = place.error,
          .placed = true,
          .named = (named_[number] & found) != 0,
          .slot = place.slot,
          .identity = place.identity};
}

}  // namespace tidegate
