// SPDX-License-Identifier: Apache-2.0
#include "cli/freshness.hpp"

#include "cli/human.hpp"

namespace tidegate::cli {
namespace {

/// Three refreshes: one may be late, three that fail are an outage.
constexpr std::chrono::milliseconds kOld{3000};

}  // namespace

Freshness Freshness::Of(const Members& overrides) {
  Freshness freshness;
  freshness.known = !overrides.Has("known") || overrides.Yes("known");
  if (overrides.Has("age_ms")) freshness.age = overrides.Ms("age_ms");
  return freshness;
}

bool Freshness::good() const noexcept { return known && (!age || *age <= kOld); }

std::string Freshness::Text() const {
  if (!known) return "not known: Redis has not answered since the start";
  return age ? "as of " + Span(*age) + " ago" : std::string{};
}

}  // namespace tidegate::cli
