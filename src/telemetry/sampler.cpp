// SPDX-License-Identifier: Apache-2.0
#include "telemetry/sampler.hpp"

#include <cmath>

namespace tidegate {

Sampler::Sampler(std::uint32_t exact, std::uint64_t seed) noexcept
    : exact_(exact), exact_left_(exact), random_(seed) {
  Begin();
}

void Sampler::Refill() noexcept {
  exact_left_ = blocks_ > exact_ / kInterval ? 0 : exact_;
  blocks_ = 0;
}

void Sampler::Begin() noexcept {
  phase_ = exact_left_ != 0 ? Phase::kExact : Phase::kBeforeChosen;
  PlanNext(exact_left_ != 0 ? 1 : 1 + (random_.Next() >> 32) % kInterval);
  after_chosen_ = kInterval - until_next_;
}

void Sampler::PlanNext(std::uint64_t events) noexcept {
  until_next_ = events;
  planned_ += events;
}

std::uint64_t Sampler::Weight() noexcept {
  switch (phase_) {
    case Phase::kExact:
      --exact_left_;
      Begin();
      return 1;
    case Phase::kBeforeChosen:
      ++blocks_;
      phase_ = Phase::kAfterChosen;
      PlanNext(after_chosen_);
      if (after_chosen_ == 0) Begin();
      return kInterval;
    case Phase::kAfterChosen: Begin(); break;
  }
  return 0;
}

SamplingError SamplingError::Of(std::uint64_t sum, std::uint64_t largest) noexcept {
  if (largest == 0) return {};
  constexpr double kL = 21;
  const double offset = kL * static_cast<double>(largest);
  const double twice = 2 * offset * static_cast<double>(sum);
  return {static_cast<std::uint64_t>(std::ceil(offset + std::sqrt(offset * offset + twice))),
          static_cast<std::uint64_t>(std::ceil(std::sqrt(twice)))};
}

}  // namespace tidegate
