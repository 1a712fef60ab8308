// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <ostream>

#include "core/charge.hpp"
#include "property/subject.hpp"

/// Tests as tables: each row is an operation at a time in microseconds, and its expected outcome.
namespace tidegate {

using oracle::Tick;
using property::At;

struct Do {
  enum class What { kStep, kDebit, kRefund } what;
  Tick at;
  std::int64_t units;
  std::int64_t count = 1;
  Tick charged_at = 0;
};
inline Do Step(Tick at, std::int64_t cost, std::int64_t count = 1) {
  return {Do::What::kStep, at, cost, count};
}
inline Do Look(Tick at, std::int64_t cost = 1) { return {Do::What::kStep, at, cost, 0}; }
inline Do Debit(Tick at, std::int64_t units) { return {Do::What::kDebit, at, units}; }
inline Do Refund(Tick at, std::int64_t units, Tick charged_at) {
  return {Do::What::kRefund, at, units, 1, charged_at};
}

enum class Beside { kNothing, kNever, kRepaired };

/// Every field of an outcome except more_after, which the oracle checks.
struct Expected {
  Outcome outcome;

  friend bool operator==(const Outcome& actual, const Expected& expected) {
    Outcome all = expected.outcome;
    all.more_after = actual.more_after;
    return actual == all;
  }
};

struct Row {
  Do act;
  std::int64_t admitted;
  std::int64_t remaining;
  Tick retry_after;
  Tick reset_after;
  Beside beside = Beside::kNothing;

  [[nodiscard]] Expected Answer() const {
    const Effect effect = beside == Beside::kRepaired ? Effect::kRepaired
                          : admitted > 0              ? Effect::kCharged
                                                      : Effect::kNone;
    return {{.admitted = admitted,
             .remaining = remaining,
             .retry_after = Micros{retry_after},
             .reset_after = Micros{reset_after},
             .never = beside == Beside::kNever,
             .effect = effect}};
  }
};

inline void PrintTo(const Outcome& o, std::ostream* out) {
  constexpr const char* kEffects[] = {"none", "charged", "repaired"};
  *out << "admitted " << o.admitted << ", remaining " << o.remaining << ", retry_after "
       << o.retry_after.count() << ", reset_after " << o.reset_after.count()
       << (o.never ? ", never, " : ", ") << kEffects[static_cast<int>(o.effect)];
}

inline void PrintTo(const Expected& expected, std::ostream* out) { PrintTo(expected.outcome, out); }

template <class S>
void Play(S& subject, std::initializer_list<Row> rows) {
  int number = 0;
  for (const Row& row : rows) {
    const Do& act = row.act;
    SCOPED_TRACE(testing::Message() << "row " << number++ << ": at " << act.at << ", " << act.units
                                    << " x " << act.count);
    const Outcome outcome = act.what == Do::What::kStep ? subject.Step(act.units, act.count, act.at)
                            : act.what == Do::What::kDebit
                                ? subject.Debit(act.units, act.at)
                                : subject.Refund(act.units, act.charged_at, act.at);
    ASSERT_EQ(outcome, row.Answer());
    ASSERT_EQ(subject.Fault(), "");
  }
}

inline Quota Make(Algorithm algorithm, std::int64_t limit, Tick period, std::int64_t burst = 0) {
  return Quota::Make({algorithm, limit, Micros{period}, burst}).value();
}

}  // namespace tidegate
