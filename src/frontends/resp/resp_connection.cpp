// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/resp_connection.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include "frontends/resp/resp_frontend.hpp"
#include "frontends/resp/resp_question.hpp"
#include "frontends/resp/throttle.hpp"
#include "rules/printable.hpp"

namespace tidegate {
namespace {

using net::Channel;
using Kind = net::Deadlines::Kind;
using Arguments = std::span<const std::string_view>;

/// So many commands, or reads, of one connection in a row, then the others have their turn.
constexpr int kMaxTurn = 1024;
constexpr int kMaxReads = 16;
/// So many of one connection are with the store at once; those behind them wait in the socket.
constexpr std::size_t kMaxWaiting = 1024;
/// So many are read before the first of them is put to the store.
constexpr int kMaxPrepared = 16;
/// A whole command, with all its elements.
constexpr std::size_t kMaxCommand = 256u << 10;
/// So much has been answered and not been taken: nothing more is begun until it is.
constexpr std::size_t kMaxUnsent = 256u << 10;
/// A command that comes, or an answer that is taken, more slowly than this: bytes per deadline.
constexpr std::size_t kMinProgress = 1024;

/// Of those who have not said who they are: what fits the buffer that everybody has.
constexpr net::RespLimits kStranger{.elements = 10, .bulk_bytes = 8u << 10};
constexpr net::RespLimits kCaller{};

/// A peer that is gone without a word is found out, though it may be silent for as long as it
/// likes.
void KeepAlive(int socket) noexcept {
  const int on = 1;
  const int idle = 120;
  const int interval = 30;
  const int count = 4;
  (void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

/// `GET / HTTP/1.1`, `POST ...` and `Host: ...`: a browser, or somebody who makes one speak here.
bool IsHttp(Arguments arguments) noexcept {
  const std::string_view name = arguments.front();
  if (name == "Host:" || name == "host:") return true;
  return arguments.size() == 3 && arguments.back().starts_with("HTTP/");
}

std::string UnknownCommand(Arguments arguments) {
  std::string text = "ERR unknown command '" + Printable(arguments.front().substr(0, 128)) +
                     "', with args beginning with: ";
  for (std::size_t i = 1; i < arguments.size() && text.size() < 256; ++i) {
    text += "'" + Printable(arguments[i].substr(0, 64)) + "' ";
  }
  return text;
}

}  // namespace

RespConnection::RespConnection(RespListener& listener, net::Accepted accepted)
    : listener_(listener),
      peer_(accepted.peer),
      id_(RespFrontend::NextId()),
      channel_(listener.door().buffers()) {
  KeepAlive(accepted.socket.get());
  channel_.Open(std::move(accepted.socket), std::move(accepted.tls));
  CheckRights();
}

RespConnection::~RespConnection() { Abandon(); }

/// What the store still has it gives back to the door.
void RespConnection::Abandon() noexcept {
  bool here = false;
  for (RespAsked* asked = std::exchange(first_, nullptr); asked != nullptr;) {
    here |= asked == prepared_;
    RespAsked* const next = std::exchange(asked->next, nullptr);
    asked->connection = nullptr;
    if (asked->ready || here) door().Give(asked);
    asked = next;
  }
  last_ = prepared_ = nullptr;
}

RespFrontend& RespConnection::door() noexcept { return listener_.door(); }

void RespConnection::Start() {
  draining_ = listener_.draining();
  if (!listener_.reactor().Watch(channel_.fd(), *this)) return Close();
  Settle();
}

void RespConnection::Drain() {
  draining_ = true;
  Settle();
}

void RespConnection::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  net::Deadlines::Disarm(*this);
  Abandon();
  channel_.Close();
  listener_.OnGone(*this);
}

void RespConnection::OnReady(std::uint32_t events) {
  if (state_ == State::kClosed) return;
  channel_.OnEvents(events);
  turn_ = 0;
  try {
    Advance(events != 0 && listener_.reactor().crowded() ? Answers::kLater : Answers::kNow);
  } catch (const std::bad_alloc&) {
    advancing_ = false;
    Close();  // Without memory for this one, the others shall go on.
  }
}

void RespConnection::OnAnswered() {
  if (advancing_) return;  // It is seen to when the store returns.
  listener_.reactor().Again(*this);
}

// --- Reading ------------------------------------------------------------------

void RespConnection::Advance(Answers answers) {
  if (!channel_.Flush()) return Close();
  advancing_ = true;
  int reads = 0;
  bool more = true;
  while (more && state_ != State::kClosed) {
    WriteReady();
    Process();
    more = state_ == State::kOpen || state_ == State::kLingers;
    if (turn_ >= kMaxTurn || reads == kMaxReads || channel_.pending() > kMaxUnsent) break;
    // What is there and may not be begun yet is not added to.
    if (more && state_ == State::kOpen && waiting_ > 0 && !channel_.input().empty()) break;
    if (more) {
      more = Read();
      ++reads;
    }
  }
  advancing_ = false;
  if (state_ == State::kClosed) return;
  if (answers == Answers::kLater && channel_.pending() > 0 && channel_.pending() <= kMaxUnsent) {
    return listener_.reactor().Again(*this);
  }
  const bool gives_way = turn_ >= kMaxTurn || channel_.pending() > kMaxUnsent ||
                         (reads == kMaxReads && channel_.readable());
  if (!channel_.Flush()) return Close();
  if (gives_way && !channel_.blocked()) listener_.reactor().Again(*this);
  Settle();
}

bool RespConnection::Read() {
  if (state_ == State::kLingers) channel_.Drop(channel_.input().size());
  switch (channel_.Fill()) {
    case Channel::Got::kBytes:
      return true;
    case Channel::Got::kNothing:
      return false;
    case Channel::Got::kFull:
      // Strangers get no more than what everybody has.
      if (channel_.Compact()) return true;
      if (rights_ != Rights::kNone && channel_.Grow(kMaxCommand)) return true;
      Refuse("Protocol error: too big a command");
      return false;
    case Channel::Got::kEnd:
      // `printf ... | nc`: what was asked is still answered.
      if (state_ == State::kLingers) {
        Close();
      } else {
        state_ = State::kEnding;
      }
      return false;
    case Channel::Got::kBroken:
      Close();
      return false;
  }
  return false;
}

void RespConnection::Process() {
  using Progress = net::RespCommandParser::Progress;
  while (state_ == State::kOpen && turn_ < kMaxTurn && waiting_ < kMaxWaiting && !barrier_ &&
         !channel_.input().empty() && channel_.pending() <= kMaxUnsent) {
    if (known_by_ != door().policy()) CheckRights();
    switch (parser_.Parse(channel_.input(), rights_ == Rights::kNone ? kStranger : kCaller)) {
      case Progress::kMore:
        return StartPrepared();
      case Progress::kBad:
        StartPrepared();
        return Refuse(parser_.problem());
      case Progress::kNothing:
        break;
      case Progress::kCommand: {
        const Arguments arguments = parser_.arguments();
        const RespWordInfo* const word = FindRespWord(arguments.front());
        // Those before it are answered first.
        if (waiting_ > 0 && (word == nullptr || word->kind != RespWordInfo::Kind::kAsks)) {
          StartPrepared();
          if (waiting_ > 0) return;
        }
        ++turn_;
        net::HttpStats::Add(listener_.stats().requests);
        if (word != nullptr) {
          if (word->kind == RespWordInfo::Kind::kConnection) {
            ExecuteHere(*word, arguments);
          } else {
            Ask(*word, arguments);
          }
        } else if (IsHttp(arguments)) {
          return RefuseHttp();
        } else if (rights_ == Rights::kNone) {
          writer().Error("NOAUTH Authentication required.");
        } else {
          writer().Error(UnknownCommand(arguments));
        }
        break;
      }
    }
    channel_.Drop(parser_.consumed());
    if (unstarted_ >= kMaxPrepared) StartPrepared();
  }
  StartPrepared();
}

void RespConnection::Refuse(std::string_view problem) {
  net::HttpStats::Add(listener_.stats().refused);
  SayError("ERR " + std::string(problem));
  channel_.Drop(channel_.input().size());
  state_ = State::kEnding;
}

void RespConnection::RefuseHttp() {
  net::HttpStats::Add(listener_.stats().refused);
  channel_.out()
      << "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n"
         "This port speaks the Redis protocol; HTTP has a port of its own.\n";
  channel_.Drop(channel_.input().size());
  state_ = State::kEnding;
}

// --- Asking -------------------------------------------------------------------

void RespConnection::Ask(const RespWordInfo& word, Arguments arguments) {
  if (rights_ == Rights::kNone) {
    door().options().refusals.Note(peer_, word.name, Refusals::Why::kUnknown);
    return SayError("NOAUTH Authentication required.");
  }
  const bool gives = word.word == RespWord::kRefund || word.word == RespWord::kReset ||
                     word.word == RespWord::kRelease;
  if (gives && rights_ != Rights::kAll) {
    door().options().refusals.Note(peer_, word.name, Refusals::Why::kRights);
    return SayError(
        token_.empty()
            ? "NOPERM quota is given back only to callers who are known: set `access.tokens`, and "
              "AUTH with one"
            : "NOPERM this token may ask only: quota is given back to those whose tokens say "
              "`all`");
  }
  RespAsked* const asked = door().Take();
  asked->policy = known_by_;
  std::string problem;
  if (word.word == RespWord::kThrottle ? PrepareThrottle(*asked, arguments, problem)
                                       : PrepareQuestion(*asked, word, arguments, problem)) {
    // One by itself is asked at once.
    const bool alone = unstarted_ == 0 && channel_.input().size() <= parser_.consumed();
    if (!alone && asked->settled == RespAsked::Settled::kNo) door().Expect(*asked);
    Append(asked);
    if (unstarted_++ == 0) prepared_ = asked;
    if (barrier_) StartPrepared();
    return;
  }
  door().Give(asked);
  SayError("ERR " + problem);
}

void RespConnection::SayError(std::string text) {
  if (first_ == nullptr) return writer().Error(text);
  RespAsked* const refused = door().Take();
  refused->refusal = std::move(text);
  refused->ready = true;
  Append(refused);
}

bool RespConnection::PrepareThrottle(RespAsked& asked, Arguments arguments, std::string& problem) {
  if (!asked.policy->resp.throttle) {
    problem = "CL.THROTTLE is off: the configuration allows it with `resp: {throttle: true}`";
    return false;
  }
  Throttle throttle;
  if (!ReadThrottle(arguments, throttle, problem)) return false;
  const Result<Quota>& quota = door().QuotaOf(throttle.quota);
  if (!quota) {
    problem = quota.error().message;
    return false;
  }
  const RuleSet& rules = *asked.policy->rules;
  const auto identity = rules.identifier().FromKey(throttle.key, asked.memory);
  if (!identity) {
    problem = identity.error().message;
    return false;
  }
  asked.quota = *quota;
  asked.quantity = throttle.quantity;
  asked.form = RespAsked::Form::kThrottle;
  asked.kind = throttle.quantity == 0 ? Call::Kind::kPeek : Call::Kind::kApply;
  asked.charge = {.rule = kInlineRule,
                  .identity = *identity,
                  .quota = &*asked.quota,
                  .cost = throttle.quantity == 0 ? 1 : throttle.quantity,
                  .lease = {},
                  .on_failure = rules.on_failure()};
  return true;
}

bool RespConnection::PrepareQuestion(RespAsked& asked, const RespWordInfo& word,
                                     Arguments arguments, std::string& problem) {
  Question question(asked.memory);
  problem = ReadRespQuestion(word, arguments, question, asked.memory);
  if (!problem.empty()) return false;
  asked.kind = KindOf(word.word);
  Resolved resolved(asked.memory);
  if (auto bad = Resolve(question, asked.kind, *asked.policy->rules, door().overrides(),
                         InlineQuotas::kRefused, resolved, asked.memory)) {
    problem = std::move(bad->message);
    return false;
  }
  if (resolved.access == Access::kRules) {
    asked.charge = resolved.charges.charges.front();
    asked.rule = resolved.charges.rules.front();
    asked.kept = std::move(resolved.charges.kept);
  } else {
    Settle(asked, resolved);
  }
  if (question.Has(Question::kId)) {
    asked.refund.id = question.id;
    if (question.Has(Question::kAge)) {
      asked.refund.age = std::chrono::milliseconds{question.age_ms};
    }
  }
  const bool done = word.word == RespWord::kRefund || word.word == RespWord::kReset ||
                    word.word == RespWord::kRenew || word.word == RespWord::kRelease;
  asked.form = done ? RespAsked::Form::kDone : RespAsked::Form::kDecision;
  barrier_ = word.kind == RespWordInfo::Kind::kChanges;
  return true;
}

void RespConnection::Settle(RespAsked& asked, const Resolved& resolved) {
  const bool banned = resolved.access == Access::kBanned;
  asked.settled = banned ? RespAsked::Settled::kBanned : RespAsked::Settled::kExempt;
  asked.rule = banned ? resolved.charges.ban.rule : resolved.charges.exempted.front();
  asked.charge = {.rule = asked.rule->id,
                  .identity = resolved.charges.ban.identity,
                  .quota = &asked.rule->quota,
                  .lease = {}};
  asked.allowed = !banned;
  asked.done = banned ? Done::kNothing : Done::kApplied;  // Of a renewal.
  asked.decision = {.allowed = !banned,
                    .never = banned && !resolved.charges.ban.left,
                    .retry_after = resolved.charges.ban.left.value_or(Micros{0}),
                    .rule = asked.rule->id};
}

void RespConnection::Append(RespAsked* asked) noexcept {
  asked->connection = this;
  (first_ == nullptr ? first_ : last_->next) = asked;
  last_ = asked;
  ++waiting_;
}

void RespConnection::StartPrepared() {
  unstarted_ = 0;
  // Those that are refused stand among them, and are ready.
  for (RespAsked* asked = std::exchange(prepared_, nullptr); asked != nullptr;) {
    RespAsked* const next = asked->next;
    if (!asked->ready) door().Start(*asked);
    asked = next;
  }
  WriteReady();
}

void RespConnection::WriteReady() {
  while (first_ != nullptr && first_->ready) {
    RespWriter to = writer();
    first_->Write(to);
    RespAsked* const asked = std::exchange(first_, first_->next);
    --waiting_;
    door().Give(asked);
  }
  if (first_ == nullptr) {
    last_ = nullptr;
    barrier_ = false;
  }
}

// --- Ends ---------------------------------------------------------------------

void RespConnection::Arm(Kind kind) noexcept {
  if (armed_ && kind_ == kind) return;
  armed_ = true;
  kind_ = kind;
  progress_mark_ = channel_.received() + channel_.sent();
  listener_.reactor().deadlines().Arm(*this, kind);
}

/// What is waited for next, and for how long.
void RespConnection::Settle() {
  if (state_ == State::kClosed) return;
  // Whoever must say who he is has so long for it, whatever he does meanwhile.
  if (rights_ == Rights::kNone && state_ == State::kOpen && !draining_) return Arm(Kind::kHeader);
  if (channel_.blocked()) return Arm(Kind::kWrite);
  if (state_ == State::kEnding && first_ == nullptr) {
    channel_.ShutdownWrite();
    if (channel_.hung_up()) return Close();
    state_ = State::kLingers;
    armed_ = false;
    Arm(Kind::kLinger);
    if (channel_.readable()) listener_.reactor().Again(*this);
    return;
  }
  if (state_ == State::kLingers) return;
  const bool idle = first_ == nullptr && channel_.input().empty();
  if (idle) {
    channel_.Rest();
    if (draining_) return Arm(Kind::kLinger);
    if (rights_ != Rights::kAll && token_.empty()) return Arm(Kind::kIdle);
  } else if (first_ == nullptr && !channel_.input().empty() && turn_ < kMaxTurn) {
    return Arm(Kind::kBody);
  }
  // Whoever is known may be silent for as long as he likes, as with Redis; a store has a deadline
  // of its own.
  armed_ = false;
  net::Deadlines::Disarm(*this);
}

void RespConnection::OnDeadline(Kind kind) {
  armed_ = false;
  const std::size_t progress = channel_.received() + channel_.sent() - progress_mark_;
  switch (kind) {
    case Kind::kIdle:
      if (progress > 0) return Arm(kind);
      break;
    case Kind::kBody:
    case Kind::kWrite:
      if (progress >= kMinProgress) return Arm(kind);
      break;
    case Kind::kLinger:
      // Something came while it was draining: that is answered first.
      if (state_ == State::kOpen && (first_ != nullptr || !channel_.input().empty())) {
        return Arm(kind);
      }
      break;
    default:
      break;
  }
  Close();
}

}  // namespace tidegate
