// SPDX-License-Identifier: Apache-2.0
// Turns commands that decide into calls, in the order of the commands.

#include <atomic>
#include <utility>

#include "frontends/question.hpp"
#include "frontends/resp/resp_frontend.hpp"

namespace tidegate {

using Arguments = std::span<const std::string_view>;

void RespConnection::Decide(const RespCommandInfo& command, Arguments arguments) {
  if (rights_ == Rights::kNone) {
    RecordUnknown(command.name);
    return ReplyError("NOAUTH Authentication required.");
  }
  // Commands that change something affect the quota of other callers: refunds, debits, renewals.
  if (command.kind == RespCommandInfo::Kind::kChange && rights_ != Rights::kAll) {
    const Tokens::Token* const token = token_.empty() ? nullptr : access_->tokens.Find(token_);
    const bool by_certificate = token_.empty() && peer_.verified;
    (void)RecordFailure(AuthFailure::Reason::kRights, command.name,
                        by_certificate     ? access_->certificates.NameOf(peer_)
                        : token == nullptr ? std::string()
                                           : token->name);
    if (by_certificate) {
      return ReplyError(
          "NOPERM this certificate has the right `ask`: giving quota back, debiting or renewing "
          "leases needs a certificate with `may: all`, or a token with the right `all`");
    }
    return ReplyError(
        token_.empty()
            ? "NOPERM only authenticated callers may give quota back, debit or renew leases: set "
              "`access.tokens`, and AUTH with one of them"
            : "NOPERM this token has the right `ask`: giving quota back, debiting or renewing "
              "leases needs a token with the right `all`");
  }
  DecisionCallPtr owned(&frontend().pipeline().Begin());
  DecisionCall& call = *owned;
  call.Attach<RespPending>(this);
  std::string problem;
  if (command.id == RespCommandInfo::Id::kThrottle
          ? PrepareThrottle(call, arguments, problem)
          : PrepareQuestion(call, command, arguments, problem)) {
    // A single command is started at once, so it needs no prefetch.
    const bool alone = unstarted_ == 0 && channel_.input().size() <= parser_.consumed();
    if (!alone && !call.matched.charges.empty()) frontend().pipeline().Prefetch(call);
    Append(std::move(owned));
    if (unstarted_++ == 0) prepared_ = &call;
    if (barrier_) StartPrepared();
    return;
  }
  ReplyError("ERR " + problem);
}

void RespConnection::ReplyError(std::string_view text) {
  if (first_ == nullptr) return writer().Error(text);
  DecisionCallPtr call(&frontend().pipeline().Begin());
  RespPending& pending = call->Attach<RespPending>(this);
  pending.form = RespPending::Form::kError;
  pending.error = call->Keep(text);
  pending.ready = true;
  Append(std::move(call));
}

bool RespConnection::PrepareThrottle(DecisionCall& call, Arguments arguments,
                                     std::string& problem) {
  if (!call.snapshot().resp.throttle) {
    problem = "CL.THROTTLE is disabled: the configuration enables it with `resp: {throttle: true}`";
    return false;
  }
  Throttle throttle;
  if (!ReadThrottle(arguments, throttle, problem)) return false;
  const Result<Quota>& quota = frontend().QuotaOf(throttle.quota);
  if (!quota) {
    problem = quota.error().message;
    return false;
  }
  const bool look = throttle.quantity == 0 || throttle.IsTooLarge();
  if (const auto error =
          AddInlineCharge(call, throttle.key, *quota, look ? 1 : throttle.quantity, {})) {
    problem = error->message;
    return false;
  }
  RespPending& pending = call.Attached<RespPending>();
  pending.form = RespPending::Form::kThrottle;
  pending.quantity = throttle.quantity;
  call.kind = look ? Call::Kind::kPeek : Call::Kind::kApply;
  return true;
}

bool RespConnection::PrepareQuestion(DecisionCall& call, const RespCommandInfo& command,
                                     Arguments arguments, std::string& problem) {
  Question question(call.memory());
  problem = ReadRespQuestion(command, arguments, question, call.Attached<RespPending>().form);
  if (!problem.empty()) return false;
  if (auto bad = Resolve(question, command.call, InlineQuotas::kRefused, call, call.memory())) {
    problem = std::move(bad->message);
    return false;
  }
  barrier_ = command.kind == RespCommandInfo::Kind::kChange;
  return true;
}

void RespConnection::StartPrepared() {
  unstarted_ = 0;
  // The list also contains errors, which are ready and must not be started.
  for (DecisionCall* call = std::exchange(prepared_, nullptr); call != nullptr;) {
    const RespPending& pending = call->Attached<RespPending>();
    DecisionCall* const next = pending.next;
    if (!pending.ready) call->Start(&frontend());
    call = next;
  }
  WriteReady();
}

void RespFrontend::OnDecided(DecisionCall& call) noexcept {
  RespPending& pending = call.Attached<RespPending>();
  pending.ready = true;
  pending.connection->OnReplyReady();
}

const Result<Quota>& RespFrontend::QuotaOf(const QuotaSpec& spec) {
  const auto mixed = (static_cast<std::uint64_t>(spec.limit) * 0x9E3779B97F4A7C15u) ^
                     (static_cast<std::uint64_t>(spec.burst) * 0xC2B2AE3D27D4EB4Fu) ^
                     (static_cast<std::uint64_t>(spec.period.count()) * 0x165667B19E3779F9u);
  CachedQuota& cached = quotas_[(mixed >> 32) % kCachedQuotas];
  if (cached.spec.limit != spec.limit || cached.spec.burst != spec.burst ||
      cached.spec.period != spec.period) {
    cached.quota = MakeThrottleQuota(spec);
    cached.spec = spec;
  }
  return cached.quota;
}

std::uint64_t RespFrontend::NextId() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

net::Connection* RespListener::NewConnection(net::Accepted accepted) {
  return new RespConnection(*this, std::move(accepted));
}

}  // namespace tidegate
