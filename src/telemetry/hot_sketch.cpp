// SPDX-License-Identifier: Apache-2.0
#include "telemetry/hot_sketch.hpp"

#include <algorithm>
#include <bit>

namespace tidegate {

HotSketch::HotSketch(std::size_t places)
    : sets_(std::bit_ceil(std::max(places, kWays)) / kWays),
      named_(sets_.size()),
      error_(sets_.size() * kWays),
      names_(sets_.size() * kWays),
      mask_(sets_.size() - 1) {
  for (Name& name : names_) name.identity.reserve(kShortName);
}

std::uint64_t HotSketch::Smallest(const Set& set) noexcept {
  return *std::min_element(set.count.begin(), set.count.end());
}

void HotSketch::Replace(Set& set, const SketchKey& key, std::uint64_t weight) noexcept {
  // Compares in pairs, which takes half as long, and without branches, which would mispredict.
  const auto less = [&](unsigned a, unsigned b) { return set.count[b] < set.count[a] ? b : a; };
  const unsigned least = less(less(less(0, 1), less(2, 3)), less(less(4, 5), less(6, 7)));
  const std::uint64_t error = set.count[least];
  set.fingerprint[least] = key.fingerprint;
  set.count[least] = error + weight;
  const std::size_t number = key.fingerprint & mask_;
  error_[number * kWays + least] = error;
  if (weight > error) {
    SetName(key, least);
  } else {
    named_[number] = static_cast<std::uint8_t>(named_[number] & ~(1u << least));
  }
}

void HotSketch::SetName(const SketchKey& key, unsigned way) noexcept {
  const std::size_t number = key.fingerprint & mask_;
  named_[number] = static_cast<std::uint8_t>(named_[number] | (1u << way));
  Name& name = names_[number * kWays + way];
  name.slot = key.slot;
  name.identity.assign(key.identity);
}

void HotSketch::Clear() noexcept {
  std::ranges::fill(sets_, Set{});
  std::ranges::fill(named_, std::uint8_t{0});
}

void HotSketch::CopyFrom(const HotSketch& other) {
  sets_ = other.sets_;
  named_ = other.named_;
  error_ = other.error_;
  names_ = other.names_;  // The sizes are equal, so the names reuse their memory.
}

HotSketch::Estimate HotSketch::Get(std::uint64_t fingerprint) const noexcept {
  const std::size_t number = fingerprint & mask_;
  const Set& set = sets_[number];
  const unsigned found = Find(set, fingerprint);
  if (found == 0) {
    const std::uint64_t bound = Smallest(set);
    return {.count = bound, .error = bound};
  }
  const auto way = static_cast<unsigned>(std::countr_zero(found));
  const Name& name = names_[number * kWays + way];
  return {.count = set.count[way],
          .error = error_[number * kWays + way],
          .placed = true,
          .named = (named_[number] & found) != 0,
          .slot = name.slot,
          .identity = name.identity};
}

}  // namespace tidegate
