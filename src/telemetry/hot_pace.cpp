// SPDX-License-Identifier: Apache-2.0
#include "telemetry/hot_pace.hpp"

#include <cmath>

namespace tidegate {

HotPace::HotPace(std::uint32_t exact, std::uint64_t seed) noexcept
    : exact_(exact), left_(exact), blocks_(0), random_(seed | 1) {
  Begin();
}

void HotPace::Refill() noexcept {
  const bool flood = blocks_ > exact_ / kOneOf;
  left_ = flood ? 0 : exact_;
  blocks_ = 0;
}

/// What comes next: one that is counted by itself, or a block.
void HotPace::Begin() noexcept {
  phase_ = left_ != 0 ? Phase::kExact : Phase::kBefore;
  Await(left_ != 0 ? 1 : 1 + Random() % kOneOf);
  after_ = kOneOf - until_;
}

void HotPace::Await(std::uint64_t until) noexcept {
  until_ = until;
  begun_ += until;
}

std::uint64_t HotPace::Turn() noexcept {
  switch (phase_) {
    case Phase::kExact:
      --left_;
      Begin();
      return 1;
    case Phase::kBefore:
      ++blocks_;
      phase_ = Phase::kAfter;
      Await(after_);
      if (after_ == 0) Begin();
      return kOneOf;
    case Phase::kAfter:
      Begin();
      break;
  }
  return 0;
}

/// xorshift64*, as in Vigna, "An experimental exploration of Marsaglia's xorshift generators".
std::uint64_t HotPace::Random() noexcept {
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return (random_ * 0x2545F4914F6CDD1Du) >> 32;
}

HotMargin HotMargin::Of(std::uint64_t sum, std::uint64_t largest) noexcept {
  if (largest == 0) return {};
  constexpr double kL = 21;
  const auto most = static_cast<double>(largest);
  const double twice = 2 * kL * most * static_cast<double>(sum);
  const double more = kL * most + std::sqrt(kL * kL * most * most + twice);
  return {static_cast<std::uint64_t>(std::ceil(more)),
          static_cast<std::uint64_t>(std::ceil(std::sqrt(twice)))};
}

}  // namespace tidegate
