// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/resp_frontend.hpp"

#include <atomic>
#include <utility>

#include "frontends/resp/resp_connection.hpp"

namespace tidegate {

RespFrontend::RespFrontend(AsyncStore& store, Tally& tally, const OverrideDesk& overrides,
                           Options options, const std::shared_ptr<const Policy>& policy)
    : store_(store), tally_(tally), overrides_(overrides), options_(std::move(options)) {
  Use(policy);
}

RespFrontend::~RespFrontend() = default;

void RespFrontend::Use(const std::shared_ptr<const Policy>& policy) {
  // A count of references of this reactor's own: no other core touches it.
  policy_ = std::make_shared<const Policy>(*policy);
}

RespAsked* RespFrontend::Take() {
  if (free_.empty()) return new RespAsked(*this);
  RespAsked* const asked = free_.back().release();
  free_.pop_back();
  return asked;
}

void RespFrontend::Give(RespAsked* asked) noexcept {
  asked->Clear();
  std::unique_ptr<RespAsked> owned(asked);
  if (free_.capacity() == 0) free_.reserve(kKept);
  if (free_.size() < kKept) free_.push_back(std::move(owned));
}

void RespFrontend::Start(RespAsked& asked) {
  asked.charges = {&asked.charge, 1};
  asked.decisions = {&asked.decision, 1};
  asked.finished = [](Call& call) noexcept {
    RespAsked& mine = static_cast<RespAsked&>(call);
    Tally& tally = mine.door.tally_;
    tally.Answered(mine.mark);
    if (!mine.error && mine.kind == Call::Kind::kApply) mine.CountIn(tally);
    if (mine.connection == nullptr) return mine.door.Give(&mine);
    mine.ready = true;
    mine.connection->OnAnswered();
  };
  if (asked.settled != RespAsked::Settled::kNo) return asked.finished(asked);
  if (asked.kind != Call::Kind::kApply) return store_.Start(asked);
  tally_.Time(asked.mark, [&] { store_.Start(asked); });
}

const Result<Quota>& RespFrontend::QuotaOf(const QuotaSpec& spec) {
  const auto mixed = (static_cast<std::uint64_t>(spec.limit) * 0x9E3779B97F4A7C15u) ^
                     (static_cast<std::uint64_t>(spec.burst) * 0xC2B2AE3D27D4EB4Fu) ^
                     (static_cast<std::uint64_t>(spec.period.count()) * 0x165667B19E3779F9u);
  Known& known = known_[(mixed >> 32) % kKnown];
  if (known.spec.limit != spec.limit || known.spec.burst != spec.burst ||
      known.spec.period != spec.period) {
    known.quota = Quota::Make(spec);
    known.spec = spec;
  }
  return known.quota;
}

std::uint64_t RespFrontend::NextId() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

net::Connection* RespListener::NewConnection(net::Accepted accepted) {
  return new RespConnection(*this, std::move(accepted));
}

}  // namespace tidegate
