// SPDX-License-Identifier: Apache-2.0
// What the script's answer means for each that waits: its entries are stepped again, waiter by
// waiter, from the states that the script found.
#include <algorithm>
#include <bit>

#include "core/constant_size.hpp"
#include "core/quota_scale.hpp"
#include "store/charge_check.hpp"
#include "store/redis/batch.hpp"
#include "store/redis/msgpack.hpp"

namespace tidegate::redis {
namespace {

using Numbers = std::array<std::int64_t, 3>;

/// The numbers of a state in the order of its members. A fixed window has only two.
template <class State>
State Load(const Numbers& numbers) noexcept {
  if constexpr (sizeof(State) == sizeof numbers) {
    return std::bit_cast<State>(numbers);
  } else {
    return std::bit_cast<State>(std::array{numbers[0], numbers[1]});
  }
}
template <class State>
Numbers Store(const State& state) noexcept {
  if constexpr (sizeof(State) == sizeof(Numbers)) {
    return std::bit_cast<Numbers>(state);
  } else {
    const auto two = std::bit_cast<std::array<std::int64_t, 2>>(state);
    return {two[0], two[1], 0};
  }
}

/// The state of a key as the script returned it; src/core applies the same steps to it as the
/// script did. Not for lists.
class KeyState {
 public:
  KeyState(Algorithm algorithm, const Numbers& numbers) noexcept
      : algorithm_(algorithm), numbers_(numbers) {}

  Outcome Step(const Quota& quota, std::int64_t cost, std::int64_t count, Time now) noexcept {
    return Apply(
        [&]<class A>(A, const auto& state) { return A::Step(state, quota, cost, count, now); });
  }
  void Debit(const Quota& quota, std::int64_t units, Time now) noexcept {
    Apply([&]<class A>(A, const auto& state) { return A::Debit(state, quota, units, now); });
  }
  void Refund(const Quota& quota, std::int64_t units, Time charged_at, Time now) noexcept {
    Apply([&]<class A>(A, const auto& state) {
      return A::Refund(state, quota, units, charged_at, now);
    });
  }
  void Reset(const Quota& quota, Time now) noexcept {
    constant_size::Dispatch(algorithm_,
                            [&]<class A>(A) { numbers_ = Store(A::Fresh(quota, now)); });
  }

 private:
  template <class Change>
  Outcome Apply(Change change) noexcept {
    return constant_size::Dispatch(algorithm_, [&]<class A>(A algorithm) {
      const auto stepped = change(algorithm, Load<typename A::State>(numbers_));
      if (stepped.outcome.effect != Effect::kNone) numbers_ = Store(stepped.next);
      return stepped.outcome;
    });
  }

  Algorithm algorithm_;
  Numbers numbers_;
};

}  // namespace

class Batch::Replay {
 public:
  Replay(Batch& batch, const Answered& answered, const GivenBack& given_back)
      : batch_(batch), answered_(answered), given_back_(given_back) {}

  Summary Run(std::string_view packed) {
    if (!ReadPacked(packed, batch_.numbers_)) return {Summary::Verdict::kBadTypes};
    left_ = batch_.numbers_;
    Summary summary;
    // Beyond what a script can hold exactly: then it is not one of ours that answers.
    constexpr std::int64_t kMost = std::int64_t{1} << 53;
    const bool sane = std::ranges::all_of(
        left_, [](std::int64_t number) { return number >= -kMost && number <= kMost; });
    if (!sane || left_.size() < 4) return {Summary::Verdict::kBadResponse};
    now_ = Time{Micros{Take()}};
    summary.repaired = Take();
    summary.healed = Take();
    summary.failed_writes = Take();
    if (!ReadStates() || !ReplayEntries()) summary.verdict = Summary::Verdict::kBadResponse;
    return summary;
  }

 private:
  std::int64_t Take() noexcept {
    const std::int64_t number = left_.front();
    left_ = left_.subspan(1);
    return number;
  }

  bool ReadStates() {
    for (const Key& key : batch_.keys_) {
      Numbers numbers{};
      if (!IsList(key.algorithm)) {
        if (left_.size() < numbers.size()) return false;
        for (std::int64_t& number : numbers) number = Take();
      }
      states_.emplace_back(key.algorithm, numbers);
    }
    return true;
  }

  bool ReplayEntries() {
    for (std::size_t i = 0; i < batch_.used_; ++i) {
      Entry& entry = batch_.entries_[i];
      if (left_.empty()) return false;
      const std::int64_t admitted = Take();
      if (!ReadLists(entry)) return false;
      const bool good = entry.kind == Call::Kind::kApply ? ReplayApply(entry, admitted)
                                                         : ReplayOther(entry, admitted);
      if (!good) return false;
    }
    return left_.empty();
  }

  bool ReadLists(const Entry& entry) {
    lists_.clear();
    for (const Item& item : Items(entry)) {
      ListOutcome list{};
      if (IsList(QuotaOf(item).algorithm())) {
        if (left_.size() < 6) return false;
        list.admitted = Take();
        list.look.remaining = Take();
        list.look.retry_after = Micros{Take()};
        list.look.more_after = Micros{Take()};
        list.look.reset_after = Micros{Take()};
        const std::int64_t bits = Take();
        list.look.never = (bits & 1) != 0;
        list.renewed = (bits & 2) != 0;
      }
      lists_.push_back(list);
    }
    return true;
  }

  [[nodiscard]] std::span<const Item> Items(const Entry& entry) const noexcept {
    return std::span(batch_.items_).subspan(entry.items, entry.item_count);
  }
  [[nodiscard]] const Quota& QuotaOf(const Item& item) const noexcept {
    return batch_.quotas_[item.quota];
  }

  // --- Apply ------------------------------------------------------------------

  /// Whether C++ admits as many as the script did, as far as it can tell: it knows no lists.
  bool Agrees(const Entry& entry, std::int64_t admitted) {
    const auto count = static_cast<std::int64_t>(entry.waiters.size());
    if (admitted < 0 || admitted > count) return false;
    std::int64_t expected = count;
    for (std::size_t i = 0; i < entry.item_count; ++i) {
      const Item& item = Items(entry)[i];
      if (item.mode == Mode::kShadow) {
        if (lists_[i].admitted < 0 || lists_[i].admitted > admitted) return false;
        continue;
      }
      if (IsList(QuotaOf(item).algorithm())) {
        const Outcome& look = lists_[i].look;
        const bool denies = look.never || look.retry_after > Micros{0};
        if (lists_[i].admitted != admitted) return false;
        if (denies) expected = std::min(expected, admitted);
      } else {
        KeyState look = states_[item.key];
        expected = std::min(expected, look.Step(QuotaOf(item), item.cost, count, now_).admitted);
      }
    }
    return expected == admitted;
  }

  bool ReplayApply(Entry& entry, std::int64_t admitted) {
    if (!Agrees(entry, admitted)) return false;
    // By place: `answered` may do anything but touch this batch.
    for (std::size_t place = 0; place < entry.waiters.size(); ++place) {
      const auto turn = static_cast<std::int64_t>(place);
      Call* const call = entry.waiters[place];
      const bool passes = turn < admitted;
      if (passes) {
        Pass(entry, call, turn, admitted);
      } else {
        Refuse(entry, call);
      }
      if (call == nullptr) continue;
      call->allowed = passes;
      call->record.at = now_;
      call->applied = Applied::kNo;
      call->error.reset();
      batch_.Remove(*call);
      answered_(*call);
    }
    return true;
  }

  /// The enforcing charges first: a shadow sees what they left.
  void Pass(const Entry& entry, Call* call, std::int64_t turn, std::int64_t admitted) {
    for (const Mode mode : {Mode::kEnforce, Mode::kShadow}) {
      for (std::size_t i = 0; i < entry.item_count; ++i) {
        const Item& item = Items(entry)[i];
        if (item.mode != mode) continue;
        Outcome outcome;
        bool allowed = true;
        if (IsList(QuotaOf(item).algorithm())) {
          const std::int64_t passed = mode == Mode::kEnforce ? admitted : lists_[i].admitted;
          allowed = turn < passed;
          outcome = lists_[i].look;
          if (allowed && QuotaOf(item).algorithm() == Algorithm::kSlidingLog) {
            outcome.remaining += (passed - 1 - turn) * item.cost;
          }
        } else {
          outcome = states_[item.key].Step(QuotaOf(item), item.cost, 1, now_);
          allowed = outcome.admitted == 1;
        }
        if (call == nullptr) continue;
        call->decisions[i] = DecisionOf(call->charges[i], outcome, allowed);
        if (lists_[i].renewed) call->record.renewed |= std::uint32_t{1} << i;
      }
    }
  }

  void Refuse(const Entry& entry, Call* call) {
    for (std::size_t i = 0; i < entry.item_count; ++i) {
      const Item& item = Items(entry)[i];
      const Outcome look = Look(item, i, item.cost);
      if (call != nullptr) call->decisions[i] = DecisionOfLook(call->charges[i], look);
    }
  }

  Outcome Look(const Item& item, std::size_t i, std::int64_t cost) {
    if (IsList(QuotaOf(item).algorithm())) return lists_[i].look;
    return states_[item.key].Step(QuotaOf(item), cost, 0, now_);
  }

  // --- All others: one charge each ----------------------------------------------

  bool ReplayOther(Entry& entry, std::int64_t applied) {
    if (applied != 0 && applied != 1) return false;
    const Item& item = Items(entry)[0];
    if (applied == 1 && !IsList(QuotaOf(item).algorithm())) Change(entry, item);
    if (applied == 1 && (entry.kind == Call::Kind::kRefund || entry.kind == Call::Kind::kReset)) {
      const Key& key = batch_.keys_[item.key];
      given_back_(std::string_view(batch_.texts_).substr(key.text, key.size));
    }
    const bool peek = entry.kind == Call::Kind::kPeek;
    const Outcome look = Look(item, 0, peek ? item.cost : 1);
    Call* const call = entry.waiters[0];
    if (call == nullptr) return true;
    const std::uint32_t i = entry.of_call;
    if (i == 0) {
      call->applied = Applied::kNo;
      call->error.reset();
    }
    call->decisions[i] = DecisionOfLook(call->charges[i], look);
    if (applied == 1 && entry.kind != Call::Kind::kDebit) call->applied = Applied::kYes;
    if (--call->record.open > 0) return true;
    call->record.at = now_;
    call->allowed = true;
    for (std::size_t c = 0; c < call->charges.size(); ++c) {
      if (call->charges[c].mode == Mode::kEnforce && !call->decisions[c].allowed) {
        call->allowed = false;
      }
    }
    batch_.Remove(*call);
    answered_(*call);
    return true;
  }

  void Change(const Entry& entry, const Item& item) {
    KeyState& state = states_[item.key];
    const Quota& quota = QuotaOf(item);
    switch (entry.kind) {
      case Call::Kind::kDebit: state.Debit(quota, item.cost, now_); break;
      case Call::Kind::kRefund: {
        const Micros value{entry.charged_value};
        const Time charged_at = entry.charged_kind == 0   ? now_
                                : entry.charged_kind == 1 ? now_ - value
                                                          : Time{value};
        state.Refund(quota, item.cost, charged_at, now_);
        break;
      }
      case Call::Kind::kReset: state.Reset(quota, now_); break;
      default: break;
    }
  }

  Batch& batch_;
  const Answered& answered_;
  const GivenBack& given_back_;
  std::span<const std::int64_t> left_;
  Time now_{};
  std::vector<KeyState> states_;
  std::vector<ListOutcome> lists_;
};

Batch::Summary Batch::Read(std::string_view packed, const Answered& answered,
                           const GivenBack& given_back) {
  return Replay(*this, answered, given_back).Run(packed);
}

}  // namespace tidegate::redis
