// SPDX-License-Identifier: Apache-2.0
#include "limiter/cross_slot_call.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

namespace tidegate {

/// One request that is carried out in parts.
class CrossSlotCalls::Request final : public PartOwner {
 public:
  explicit Request(CrossSlotCalls& home) : home_(home) {}

  void Begin(Call& whole, const redis::Client::Parts& parts);

  void OnAnswered(Call& part) override {
    static_cast<Part&>(part).state = State::kAnswered;
    OnDone();
  }
  void OnFailed(Call& part, redis::Reason reason) override {
    static_cast<Part&>(part).state = State::kFailed;
    static_cast<Part&>(part).reason = reason;
    OnDone();
  }
  void OnSplit(Call& call) override;

 private:
  enum class State : std::uint8_t { kWaits, kSent, kAnswered, kFailed };
  struct Part : Call {
    State state = State::kWaits;
    bool late = false;  ///< It is sent after the other parts have passed.
    redis::Reason reason{};
    std::size_t first = 0;  ///< The index of its first charge.

    [[nodiscard]] bool applied_by_redis() const noexcept {
      return state == State::kAnswered && kind == Kind::kApply;
    }
  };

  void AddPart(std::size_t first, std::size_t count, std::uint16_t slot);
  /// Answers the parts whose denials are cached. Returns true if there are any.
  [[nodiscard]] bool KnownToDeny();
  /// Sends all parts of this stage that are not answered yet.
  void Send(bool late);
  void Submit(Part& part);
  void OnDone();
  /// Returns true if it is certain that the request does not pass.
  [[nodiscard]] bool Refused() const;
  void Finish();
  /// Calls `finished`; afterwards this object may be reused for another call.
  void Complete();
  /// Answers the charges of failed parts by their policies. Returns false if a policy refuses.
  [[nodiscard]] bool AnswerFailed(bool look);
  /// Sets the part's `record.request`. No Error is possible: the whole request was checked before.
  void Name(Part& part) { (void)Identify(home_.fingerprinter_, part); }

  CrossSlotCalls& home_;
  Call* whole_ = nullptr;
  std::vector<Charge> charges_;  ///< The charges of one part are adjacent.
  std::vector<Decision> decisions_;
  std::vector<std::uint8_t> origins_;  ///< The index of each charge in the whole request.
  std::vector<Part> parts_;            ///< Never reallocated: there is room for one per charge.
  std::size_t open_ = 0;               ///< Parts that were sent and are not answered.
  bool late_ = false;                  ///< True once the late parts were sent.
};

/// Gives one charge back. The request that made the charge may be gone, so this object owns all
/// that it needs.
class CrossSlotCalls::Compensation final : public PartOwner, public Call {
 public:
  explicit Compensation(CrossSlotCalls& home) : home_(home) {}

  void Begin(const Charge& charged, const CallRecord& of) {
    rule_ = charged.rule;
    identity_ = charged.identity;
    lease_ = charged.lease;
    slot_tag_ = charged.slot_tag;
    quota_ = *charged.quota;
    charge_ = charged;
    charge_.rule = rule_;
    charge_.identity = identity_;
    charge_.lease = lease_;
    charge_.slot_tag = slot_tag_;
    charge_.quota = &*quota_;
    const bool lease = quota_->algorithm() == Algorithm::kConcurrency;
    kind = lease ? Kind::kRelease : Kind::kRefund;
    charges = {&charge_, 1};
    decisions = {&decision_, 1};
    refund = {.id = {}, .charged_at = of.at};  // Sent only once, so it needs no id.
    record = {};
    record.slot = of.slot;
    record.owner = this;
    home_.client_.Submit(*this);
  }
  void OnAnswered(Call&) override { Done(home_.stats_.compensations); }
  void OnFailed(Call&, redis::Reason) override { Done(home_.stats_.failed_compensations); }
  void OnSplit(Call& part) override { home_.client_.Resume(part); }

 private:
  void Done(redis::Count& count) {
    count.Add();
    home_.compensations_.Give(*this);
  }

  CrossSlotCalls& home_;
  std::string rule_;
  std::string identity_;
  std::string lease_;
  std::string slot_tag_;
  std::optional<Quota> quota_;
  Charge charge_;
  Decision decision_;
};

CrossSlotCalls::CrossSlotCalls(redis::Client& client, const Fingerprinter& fingerprinter,
                               FailurePolicy& policy, DenyCache& cache, RedisStoreStats& stats)
    : client_(client),
      fingerprinter_(fingerprinter),
      policy_(policy),
      cache_(cache),
      stats_(stats) {}

CrossSlotCalls::~CrossSlotCalls() = default;

void CrossSlotCalls::Start(Call& whole, const redis::Client::Parts& parts) {
  stats_.cross_slot_calls.Add();
  requests_.Take(*this).Begin(whole, parts);
}

void CrossSlotCalls::Compensate(const Call& part) {
  for (std::size_t i = 0; i < part.charges.size(); ++i) {
    // A shadow charge that did not fit was not made; a lease that was held before must not end.
    if (!part.decisions[i].allowed || (part.record.renewed >> i & 1) != 0) continue;
    compensations_.Take(*this).Begin(part.charges[i], part.record);
  }
}

// --- One request ------------------------------------------------------------------

void CrossSlotCalls::Request::Begin(Call& whole, const redis::Client::Parts& parts) {
  whole_ = &whole;
  const std::size_t count = whole.charges.size();
  charges_.clear();
  charges_.reserve(count);  // Parts point into it.
  origins_.clear();
  decisions_.assign(count, Decision{});
  parts_.clear();
  parts_.reserve(count);
  const auto now = redis::Client::Clock::now();
  if (whole.record.since == 0) {
    whole.record.since = std::chrono::nanoseconds{now.time_since_epoch()}.count();
  }
  for (std::size_t part = 0; part < parts.count; ++part) {
    const std::size_t first = charges_.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (parts.part[i] != part) continue;
      charges_.push_back(whole.charges[i]);
      origins_.push_back(static_cast<std::uint8_t>(i));
    }
    AddPart(first, charges_.size() - first, parts.slot[part]);
  }
  if (KnownToDeny() && home_.cache_.Find(whole, now)) {
    home_.stats_.cache_hits.Add();
    return Complete();
  }
  const bool any_early = std::ranges::any_of(
      parts_, [](const Part& part) { return !part.late && part.state == State::kWaits; });
  Send(!any_early);
}

void CrossSlotCalls::Request::AddPart(std::size_t first, std::size_t count, std::uint16_t slot) {
  Part& part = parts_.emplace_back();
  part.first = first;
  part.kind = whole_->kind;
  part.charges = std::span(charges_.data() + first, count);
  part.decisions = std::span(decisions_).subspan(first, count);
  part.refund = whole_->refund;
  part.record.since = whole_->record.since;
  part.record.slot = slot;
  part.record.owner = this;
  part.late =
      whole_->kind == Call::Kind::kApply &&
      (std::ranges::any_of(
           part.charges,
           [](const Charge& c) { return c.quota->algorithm() == Algorithm::kConcurrency; }) ||
       std::ranges::all_of(part.charges, [](const Charge& c) { return c.mode == Mode::kShadow; }));
}

void CrossSlotCalls::Request::Send(bool late) {
  late_ = late;
  const bool look = Refused();
  std::array<Part*, kMaxCharges> sent;
  open_ = 0;
  for (Part& part : parts_) {
    if (part.late != late || part.state != State::kWaits) continue;
    if (look) part.kind = Call::Kind::kPeek;
    sent[open_++] = &part;
  }
  if (open_ == 0) return Finish();
  // The last part may be answered at once, which finishes the request.
  const std::size_t count = open_;
  for (std::size_t i = 0; i < count; ++i) Submit(*sent[i]);
}

void CrossSlotCalls::Request::Submit(Part& part) {
  part.state = State::kSent;
  if (part.kind == Call::Kind::kApply) Name(part);
  try {
    home_.client_.Resume(part);
  } catch (const std::bad_alloc&) {
    // Other parts may have been sent: the request is finished when they are answered.
    OnFailed(part, redis::Reason::kQueueFull);
  }
}

bool CrossSlotCalls::Request::KnownToDeny() {
  if (whole_->kind != Call::Kind::kApply) return false;
  const auto now = redis::Client::Clock::now();
  bool known = false;
  for (Part& part : parts_) {
    if (part.late || !DenyCache::MayKeep(part)) continue;
    Name(part);
    if (!home_.cache_.Find(part, now)) continue;
    part.state = State::kAnswered;
    known = true;
  }
  return known;
}

void CrossSlotCalls::Request::OnSplit(Call& call) {
  Part& part = static_cast<Part&>(call);
  const std::size_t count = part.charges.size();
  std::array<Part*, kMaxCharges> alone{&part};
  for (std::size_t i = 1; i < count; ++i) {
    AddPart(part.first + i, 1, part.record.slot);
    alone[i] = &parts_.back();
    alone[i]->kind = part.kind;
    alone[i]->late = part.late;
  }
  part.charges = part.charges.first(1);
  part.decisions = part.decisions.first(1);
  open_ += count - 1;
  for (std::size_t i = 0; i < count; ++i) Submit(*alone[i]);
}

bool CrossSlotCalls::Request::Refused() const {
  return std::ranges::any_of(parts_, [](const Part& part) {
    if (part.applied_by_redis() && !part.allowed) return true;
    return part.state == State::kFailed &&
           std::ranges::any_of(part.charges, [](const Charge& charge) {
             return charge.on_failure == OnFailure::kClosed && charge.mode == Mode::kEnforce;
           });
  });
}

void CrossSlotCalls::Request::OnDone() {
  if (--open_ > 0) return;
  const bool any_waits =
      std::ranges::any_of(parts_, [](const Part& part) { return part.state == State::kWaits; });
  if (!late_ && any_waits) return Send(true);
  Finish();
}

bool CrossSlotCalls::Request::AnswerFailed(bool look) {
  std::array<Charge, kMaxCharges> charges;
  std::array<Decision, kMaxCharges> decisions;
  std::array<redis::Reason, kMaxCharges> reasons;
  std::array<std::size_t, kMaxCharges> places;
  std::size_t count = 0;
  for (const Part& part : parts_) {
    if (part.state != State::kFailed) continue;
    for (std::size_t i = 0; i < part.charges.size(); ++i, ++count) {
      charges[count] = part.charges[i];
      reasons[count] = part.reason;
      places[count] = part.first + i;
    }
  }
  if (count == 0) return true;
  Call failed;
  failed.kind = look ? Call::Kind::kPeek : whole_->kind;
  failed.charges = std::span(charges).first(count);
  failed.decisions = std::span(decisions).first(count);
  failed.refund = whole_->refund;
  home_.policy_.Answer(failed);
  if (failed.error) {
    whole_->error = std::move(failed.error);
    return false;
  }
  for (std::size_t i = 0; i < count; ++i) {
    decisions_[places[i]] = decisions[i];
    decisions_[places[i]].reason = redis::DecisionReason(reasons[i]);
    home_.stats_.CountFailure(whole_->kind, decisions[i].decided_by, reasons[i]);
  }
  if (failed.applied == Applied::kYes) whole_->applied = Applied::kYes;
  return failed.allowed;
}

void CrossSlotCalls::Request::Finish() {
  Call& whole = *whole_;
  const bool apply = whole.kind == Call::Kind::kApply;
  whole.error.reset();
  whole.applied = Applied::kNo;
  bool allowed = true;
  bool any_failed = false;
  for (const Part& part : parts_) {
    any_failed = any_failed || part.state == State::kFailed;
    if (part.state != State::kAnswered) continue;
    allowed = allowed && part.allowed;
    if (part.applied == Applied::kYes) whole.applied = Applied::kYes;
  }
  allowed = AnswerFailed(apply && !allowed) && allowed;
  whole.allowed = allowed;
  for (const Part& part : parts_) {
    if (!apply || allowed || !part.applied_by_redis() || !part.allowed) continue;
    home_.Compensate(part);
    for (std::size_t i = 0; i < part.charges.size(); ++i) {
      // Report the state after the compensation.
      Decision& decision = part.decisions[i];
      if (!decision.allowed) continue;
      decision.remaining = std::min(decision.limit, decision.remaining + part.charges[i].cost);
    }
  }
  for (std::size_t i = 0; i < decisions_.size(); ++i) whole.decisions[origins_[i]] = decisions_[i];
  if (!allowed && !any_failed) {
    home_.cache_.Insert(
        whole, redis::Client::Clock::time_point{std::chrono::nanoseconds{whole.record.since}});
  }
  Complete();
}

void CrossSlotCalls::Request::Complete() {
  Call& whole = *std::exchange(whole_, nullptr);
  home_.requests_.Give(*this);
  whole.finished(whole);
}

}  // namespace tidegate
