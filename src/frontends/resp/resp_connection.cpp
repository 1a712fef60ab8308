// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/resp_connection.hpp"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "frontends/resolve.hpp"
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
      channel_(listener.frontend().buffers()) {
  KeepAlive(accepted.socket.get());
  channel_.Open(std::move(accepted.socket), std::move(accepted.tls));
  CheckRights();
}

RespConnection::~RespConnection() { DropCalls(); }

void RespConnection::DropCalls() noexcept {
  for (DecisionCall* call = std::exchange(first_, nullptr); call != nullptr;) {
    DecisionCall* const next = call->Attached<RespPending>().next;
    call->Drop();
    call = next;
  }
  last_ = prepared_ = nullptr;
}

RespFrontend& RespConnection::frontend() noexcept { return listener_.frontend(); }

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
  DropCalls();
  channel_.Close();
  listener_.OnGone(*this);
}

void RespConnection::OnReady(std::uint32_t events) {
  if (state_ == State::kClosed) return;
  // A reset connection takes no reply. (A client that only ended its own side still reads.)
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return Close();
  channel_.OnEvents(events);
  turn_ = 0;
  try {
    Advance(events != 0 && listener_.reactor().crowded() ? Answers::kLater : Answers::kNow);
  } catch (const std::bad_alloc&) {
    advancing_ = false;
    Close();  // Without memory for this one, the others shall go on.
  }
}

void RespConnection::OnReplyReady() {
  if (advancing_) return;  // Advance writes the replies when the store returns.
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
    if (snapshot_ != frontend().pipeline().snapshot()) CheckRights();
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
            Decide(*word, arguments);
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
  ReplyError("ERR " + std::string(problem));
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

// --- Decisions -------------------------------------------------------------------

void RespConnection::Decide(const RespWordInfo& word, Arguments arguments) {
  if (rights_ == Rights::kNone) {
    frontend().refusals().Note(peer_, word.name, Refusals::Why::kUnknown);
    return ReplyError("NOAUTH Authentication required.");
  }
  const bool gives = word.word == RespWord::kRefund || word.word == RespWord::kReset ||
                     word.word == RespWord::kRelease;
  if (gives && rights_ != Rights::kAll) {
    frontend().refusals().Note(peer_, word.name, Refusals::Why::kRights);
    return ReplyError(
        token_.empty()
            ? "NOPERM quota is given back only to callers who are known: set `access.tokens`, and "
              "AUTH with one"
            : "NOPERM this token may ask only: quota is given back to those whose tokens say "
              "`all`");
  }
  DecisionCall& call = frontend().pipeline().Begin();
  call.Attach<RespPending>(this);
  std::string problem;
  if (word.word == RespWord::kThrottle ? PrepareThrottle(call, arguments, problem)
                                       : PrepareQuestion(call, word, arguments, problem)) {
    // A command by itself is started at once.
    const bool alone = unstarted_ == 0 && channel_.input().size() <= parser_.consumed();
    if (!alone && !call.matched.charges.empty()) frontend().pipeline().Prefetch(call);
    Append(call);
    if (unstarted_++ == 0) prepared_ = &call;
    if (barrier_) StartPrepared();
    return;
  }
  call.Drop();
  ReplyError("ERR " + problem);
}

void RespConnection::ReplyError(std::string_view text) {
  if (first_ == nullptr) return writer().Error(text);
  DecisionCall& call = frontend().pipeline().Begin();
  RespPending& pending = call.Attach<RespPending>(this);
  pending.form = RespPending::Form::kError;
  pending.error = call.Keep(text);
  pending.ready = true;
  Append(call);
}

bool RespConnection::PrepareThrottle(DecisionCall& call, Arguments arguments,
                                     std::string& problem) {
  if (!call.snapshot().resp.throttle) {
    problem = "CL.THROTTLE is off: the configuration allows it with `resp: {throttle: true}`";
    return false;
  }
  Throttle throttle;
  if (!ReadThrottle(arguments, throttle, problem)) return false;
  const Result<Quota>& quota = frontend().QuotaOf(throttle.quota);
  if (!quota) {
    problem = quota.error().message;
    return false;
  }
  const RuleSet& rules = *call.snapshot().rules;
  const auto identity = rules.identifier().FromKey(throttle.key, call.memory());
  if (!identity) {
    problem = identity.error().message;
    return false;
  }
  RespPending& pending = call.Attached<RespPending>();
  pending.form = RespPending::Form::kThrottle;
  pending.quantity = throttle.quantity;
  call.kind = throttle.quantity == 0 ? Call::Kind::kPeek : Call::Kind::kApply;
  call.matched.Add({.rule = kInlineRule,
                    .identity = *identity,
                    .quota = &call.inline_quota.emplace(*quota),
                    .cost = throttle.quantity == 0 ? 1 : throttle.quantity,
                    .on_failure = rules.on_failure()},
                   nullptr);
  return true;
}

bool RespConnection::PrepareQuestion(DecisionCall& call, const RespWordInfo& word,
                                     Arguments arguments, std::string& problem) {
  Question question(call.memory());
  problem = ReadRespQuestion(word, arguments, question);
  if (!problem.empty()) return false;
  if (auto bad =
          Resolve(question, KindOf(word.word), InlineQuotas::kRefused, call, call.memory())) {
    problem = std::move(bad->message);
    return false;
  }
  const bool done = word.word == RespWord::kRefund || word.word == RespWord::kReset ||
                    word.word == RespWord::kRenew || word.word == RespWord::kRelease;
  if (done) call.Attached<RespPending>().form = RespPending::Form::kDone;
  barrier_ = word.kind == RespWordInfo::Kind::kChanges;
  return true;
}

void RespConnection::Append(DecisionCall& call) noexcept {
  if (first_ == nullptr) {
    first_ = &call;
  } else {
    last_->Attached<RespPending>().next = &call;
  }
  last_ = &call;
  ++waiting_;
}

void RespConnection::StartPrepared() {
  unstarted_ = 0;
  // Errors are among them, and are ready.
  for (DecisionCall* call = std::exchange(prepared_, nullptr); call != nullptr;) {
    const RespPending& pending = call->Attached<RespPending>();
    DecisionCall* const next = pending.next;
    if (!pending.ready) call->Start(&frontend());
    call = next;
  }
  WriteReady();
}

void RespConnection::WriteReady() {
  while (first_ != nullptr && first_->Attached<RespPending>().ready) {
    RespWriter to = writer();
    WriteReply(to, *first_);
    DecisionCall* const call = std::exchange(first_, first_->Attached<RespPending>().next);
    --waiting_;
    call->Drop();
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
