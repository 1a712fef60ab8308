// SPDX-License-Identifier: Apache-2.0
#include "limiter/span.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "limiter/request_key.hpp"

namespace tidegate {

/// One such request.
class Spans::Span final : public Partial {
 public:
  explicit Span(Spans& home) : home_(home) {}

  void Begin(Call& whole, const redis::Client::Parts& parts);

  void OnAnswered(Call& part) override;
  void OnFailed(Call& part, redis::Reason reason) override;
  void OnSplit(Call& call) override;

 private:
  enum class State : std::uint8_t { kWaits, kAsked, kAnswered, kFailed };
  struct Part : Call {
    State state = State::kWaits;
    bool late = false;  ///< It comes after the others.
    redis::Reason reason{};
    std::size_t first = 0;  ///< Of its charges.
  };

  void AddPart(std::size_t first, std::size_t count, std::uint16_t slot);
  /// Whether a part is known to deny; those are answered then.
  [[nodiscard]] bool KnownToDeny();
  /// All parts of this stage that are not answered yet.
  void Ask(bool late);
  void Name(Part& part);
  void Submit(Part& part);
  void OnDone();
  /// Whether it is certain that the request does not pass.
  [[nodiscard]] bool Refused() const;
  void Finish();
  /// Answers for the charges of parts that failed. False: they refuse the request.
  [[nodiscard]] bool AnswerFailed(bool look);

  Spans& home_;
  Call* whole_ = nullptr;
  std::vector<Charge> charges_;  ///< Those of one part stand together.
  std::vector<Decision> decisions_;
  std::vector<std::uint8_t> origins_;  ///< Which charge of the whole it is.
  std::vector<Part> parts_;            ///< Stay where they are: there is room for one per charge.
  std::size_t open_ = 0;               ///< Parts that are asked for and have no answer.
  bool asked_late_ = false;
};

/// Gives one charge back, whoever asked for it being gone: it has all that it needs itself.
class Spans::GiveBack final : public Partial, public Call {
 public:
  explicit GiveBack(Spans& home) : home_(home) {}

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
    refund = {.id = {}, .charged_at = of.at};  // Sent once only: nobody has to know it again.
    record = {};
    record.slot = of.slot;
    record.span = static_cast<Partial*>(this);
    home_.client_.Submit(*this);
  }
  void OnAnswered(Call&) override {
    home_.stats_.taken_back.Add();
    home_.spare_gifts_.push_back(this);
  }
  void OnFailed(Call&, redis::Reason) override {
    home_.stats_.kept.Add();
    home_.spare_gifts_.push_back(this);
  }
  void OnSplit(Call& part) override { home_.client_.Resume(part); }

 private:
  Spans& home_;
  std::string rule_;
  std::string identity_;
  std::string lease_;
  std::string slot_tag_;
  std::optional<Quota> quota_;
  Charge charge_;
  Decision decision_;
};

Spans::Spans(redis::Client& client, const Fingerprinter& fingerprinter, FailurePolicy& policy,
             DenyCache& cache, Keep keep, GuardStats& stats)
    : client_(client),
      fingerprinter_(fingerprinter),
      policy_(policy),
      cache_(cache),
      keep_(std::move(keep)),
      stats_(stats) {}

Spans::~Spans() = default;

void Spans::Start(Call& whole, const redis::Client::Parts& parts) {
  if (spare_.empty()) {
    all_.push_back(std::make_unique<Span>(*this));
    spare_.push_back(all_.back().get());
    spare_.reserve(all_.size());
  }
  Span* const span = spare_.back();
  spare_.pop_back();
  stats_.spans.Add();
  span->Begin(whole, parts);
}

void Spans::Recycle(Span* span) { spare_.push_back(span); }

void Spans::TakeBack(const Call& part) {
  for (std::size_t i = 0; i < part.charges.size(); ++i) {
    // A shadow that did not fit was not charged; a lease that was held before is not ours to end.
    if (!part.decisions[i].allowed || (part.record.renewed >> i & 1) != 0) continue;
    if (spare_gifts_.empty()) {
      gifts_.push_back(std::make_unique<GiveBack>(*this));
      spare_gifts_.push_back(gifts_.back().get());
      spare_gifts_.reserve(gifts_.size());
    }
    GiveBack* const gift = spare_gifts_.back();
    spare_gifts_.pop_back();
    gift->Begin(part.charges[i], part.record);
  }
}

// --- One span -------------------------------------------------------------------

void Spans::Span::Begin(Call& whole, const redis::Client::Parts& parts) {
  whole_ = &whole;
  charges_.clear();
  origins_.clear();
  decisions_.assign(whole.charges.size(), Decision{});
  parts_.clear();
  parts_.reserve(whole.charges.size());
  asked_late_ = false;
  if (whole.record.since == 0) {
    whole.record.since =
        std::chrono::nanoseconds{redis::Client::Clock::now().time_since_epoch()}.count();
  }
  for (std::size_t part = 0; part < parts.count; ++part) {
    for (std::size_t i = 0; i < whole.charges.size(); ++i) {
      if (parts.part[i] != part) continue;
      charges_.push_back(whole.charges[i]);
      origins_.push_back(static_cast<std::uint8_t>(i));
    }
  }
  std::size_t first = 0;
  for (std::size_t part = 0; part < parts.count; ++part) {
    const auto of_whole = std::span(parts.part).first(whole.charges.size());
    const auto count = static_cast<std::size_t>(std::ranges::count(of_whole, part));
    AddPart(first, count, parts.slot[part]);
    first += count;
  }
  if (KnownToDeny()) {
    if (DenyCache::MayKeep(whole) && home_.cache_.Find(whole, redis::Client::Clock::now())) {
      home_.stats_.cache_hits.Add();
      whole_ = nullptr;
      home_.Recycle(this);
      return whole.finished(whole);
    }
  }
  const bool any_early = std::ranges::any_of(
      parts_, [](const Part& part) { return !part.late && part.state == State::kWaits; });
  Ask(!any_early);
}

void Spans::Span::AddPart(std::size_t first, std::size_t count, std::uint16_t slot) {
  Part& part = parts_.emplace_back();
  part.first = first;
  part.kind = whole_->kind;
  part.charges = std::span(charges_).subspan(first, count);
  part.decisions = std::span(decisions_).subspan(first, count);
  part.refund = whole_->refund;
  part.record = {};
  part.record.since = whole_->record.since;
  part.record.slot = slot;
  part.record.span = static_cast<Partial*>(this);
  part.late =
      whole_->kind == Call::Kind::kApply &&
      (std::ranges::any_of(
           part.charges,
           [](const Charge& c) { return c.quota->algorithm() == Algorithm::kConcurrency; }) ||
       std::ranges::all_of(part.charges, [](const Charge& c) { return c.mode == Mode::kShadow; }));
}

void Spans::Span::Ask(bool late) {
  asked_late_ = late;
  const bool look = Refused();
  std::array<Part*, kMaxCharges> asked;
  std::size_t count = 0;
  for (Part& part : parts_) {
    if (part.late != late || part.state != State::kWaits) continue;
    if (look) part.kind = Call::Kind::kPeek;
    asked[count++] = &part;
  }
  open_ = count;
  if (count == 0) return Finish();
  // The last of them may be answered at once, and end all of this.
  for (std::size_t i = 0; i < count; ++i) Submit(*asked[i]);
}

void Spans::Span::Submit(Part& part) {
  part.state = State::kAsked;
  if (part.kind == Call::Kind::kApply) Name(part);
  try {
    home_.client_.Resume(part);
  } catch (const std::bad_alloc&) {
    // Others of it may be on their way: it ends when they do.
    OnFailed(part, redis::Reason::kQueueFull);
  }
}

void Spans::Span::Name(Part& part) {
  // Two charges of one request never name the same key: that was checked of the whole.
  (void)Identify(home_.fingerprinter_, part);
}

bool Spans::Span::KnownToDeny() {
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

void Spans::Span::OnAnswered(Call& part) {
  static_cast<Part&>(part).state = State::kAnswered;
  OnDone();
}

void Spans::Span::OnFailed(Call& part, redis::Reason reason) {
  static_cast<Part&>(part).state = State::kFailed;
  static_cast<Part&>(part).reason = reason;
  OnDone();
}

void Spans::Span::OnSplit(Call& call) {
  Part& part = static_cast<Part&>(call);
  const Call::Kind kind = part.kind;
  const bool late = part.late;
  const std::size_t count = part.charges.size();
  std::array<Part*, kMaxCharges> asked{&part};
  for (std::size_t i = 1; i < count; ++i) {
    AddPart(part.first + i, 1, part.record.slot);
    asked[i] = &parts_.back();
  }
  part.charges = part.charges.first(1);
  part.decisions = part.decisions.first(1);
  open_ += count - 1;
  for (std::size_t i = 0; i < count; ++i) {
    asked[i]->kind = kind;
    asked[i]->late = late;
    Submit(*asked[i]);
  }
}

bool Spans::Span::Refused() const {
  for (const Part& part : parts_) {
    if (part.state == State::kAnswered && part.kind == Call::Kind::kApply && !part.allowed) {
      return true;
    }
    if (part.state != State::kFailed) continue;
    for (const Charge& charge : part.charges) {
      if (charge.on_failure == OnFailure::kClosed && charge.mode == Mode::kEnforce) return true;
    }
  }
  return false;
}

void Spans::Span::OnDone() {
  if (--open_ > 0) return;
  if (!asked_late_) {
    const bool any_late =
        std::ranges::any_of(parts_, [](const Part& p) { return p.state == State::kWaits; });
    if (any_late) return Ask(true);
  }
  Finish();
}

bool Spans::Span::AnswerFailed(bool look) {
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
  if (failed.done == Done::kApplied) whole_->done = Done::kApplied;
  return failed.allowed;
}

void Spans::Span::Finish() {
  Call& whole = *whole_;
  const bool apply = whole.kind == Call::Kind::kApply;
  whole.error.reset();
  whole.done = Done::kNothing;
  bool allowed = true;
  for (const Part& part : parts_) {
    if (part.state != State::kAnswered) continue;
    allowed = allowed && part.allowed;
    if (part.done == Done::kApplied) whole.done = Done::kApplied;
  }
  allowed = AnswerFailed(apply && !allowed) && allowed;
  whole.allowed = allowed;
  if (apply && !allowed) {
    for (const Part& part : parts_) {
      if (part.state != State::kAnswered || part.kind != Call::Kind::kApply || !part.allowed)
        continue;
      home_.TakeBack(part);
      for (std::size_t i = 0; i < part.charges.size(); ++i) {
        // As it will be in a moment.
        Decision& told = part.decisions[i];
        if (told.allowed)
          told.remaining = std::min(told.limit, told.remaining + part.charges[i].cost);
      }
    }
  }
  for (std::size_t i = 0; i < decisions_.size(); ++i) whole.decisions[origins_[i]] = decisions_[i];
  const bool of_store =
      std::ranges::none_of(parts_, [](const Part& part) { return part.state == State::kFailed; });
  if (apply && !allowed && of_store && DenyCache::MayKeep(whole)) {
    home_.keep_(whole,
                redis::Client::Clock::time_point{std::chrono::nanoseconds{whole.record.since}});
  }
  whole_ = nullptr;
  home_.Recycle(this);
  whole.finished(whole);
}

}  // namespace tidegate
