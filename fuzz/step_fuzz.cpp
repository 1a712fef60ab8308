// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "property/lease_history.hpp"

namespace tidegate::property {
namespace {

/// Number of steps of one input. Enough for a state to go wrong and to show it; few enough that an
/// input takes well under 200 us, so that the fuzzer tries more than 5,000 inputs per second.
constexpr int kSteps = 32;

std::optional<std::string> Run(Source& source) {
  const std::uint64_t choice = source.Below(12);
  const Freedom freedom{.clock_steps_back = choice >= 6};
  switch (static_cast<Algorithm>(choice % 6)) {
    case Algorithm::kTokenBucket: return RunHistory<TokenBucketKit>(source, freedom, kSteps);
    case Algorithm::kSlidingLog: return RunLogHistory(source, freedom, kSteps);
    case Algorithm::kSlidingWindow: return RunHistory<SlidingWindowKit>(source, freedom, kSteps);
    case Algorithm::kFixedWindow: return RunHistory<FixedWindowKit>(source, freedom, kSteps);
    case Algorithm::kGcra: return RunHistory<GcraKit>(source, freedom, kSteps);
    case Algorithm::kConcurrency: return RunLeaseHistory(source, freedom, kSteps);
  }
  return std::nullopt;
}

}  // namespace
}  // namespace tidegate::property

/// The bytes choose an algorithm, a quota and a history. A result that differs from that of the
/// oracle ends the run.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tidegate::property::Source source(std::span(data, size));
  if (const auto disagreement = tidegate::property::Run(source)) {
    std::fprintf(stderr, "%s\n", disagreement->c_str());
    std::abort();
  }
  return 0;
}
