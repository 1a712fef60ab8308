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

/// Commands, and reads, of one connection in a row before other connections get their turn.
constexpr int kMaxTurn = 1024;
constexpr int kMaxReads = 16;
/// Pending calls of one connection; further commands stay in the socket.
constexpr std::size_t kMaxWaiting = 1024;
/// Commands that are prepared before the first of them is started.
constexpr int kMaxPrepared = 16;
/// Bytes of one command, with all its elements.
constexpr std::size_t kMaxCommand = 256u << 10;
/// Bytes of replies that the client has not read, before and after authentication; no command is
/// started while there are more.
constexpr std::size_t kMaxUnsentUnauthenticated = 2u << 10;
constexpr std::size_t kMaxUnsent = 256u << 10;

/// Limits before and after authentication. `HELLO 3 AUTH name token SETNAME name` has 7 elements,
/// of which the client's name is the longest, with up to 256 bytes.
constexpr net::RespLimits kUnauthenticated{.elements = 10, .bulk_bytes = 512};
constexpr net::RespLimits kAuthenticated{};
/// Bytes of an incomplete command before authentication.
constexpr std::size_t kMaxUnauthenticated = 1024;

/// Lets TCP detect peers that vanished: authenticated clients have no idle timeout.
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

/// True for `GET / HTTP/1.1`, `POST ... HTTP/1.1` and `Host: ...`: the client is a browser, perhaps
/// directed here by an attacker's page.
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

std::size_t RespConnection::max_unsent() const noexcept {
  return rights_ == Rights::kNone ? kMaxUnsentUnauthenticated : kMaxUnsent;
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
  channel_.OnEvents(events);
  // A reset connection takes no reply, so the calls in progress are dropped.
  if ((events & EPOLLERR) != 0 && first_ != nullptr) return Close();
  turn_ = 0;
  try {
    Advance(events != 0 && listener_.reactor().crowded() ? Answers::kLater : Answers::kNow);
  } catch (const std::bad_alloc&) {
    advancing_ = false;
    Close();  // Out of memory: give up this connection so that the others can go on.
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
    if (turn_ >= kMaxTurn || reads == kMaxReads || channel_.pending() > max_unsent()) break;
    // Read no more while commands that have been read may not be started yet.
    if (more && state_ == State::kOpen && waiting_ > 0 && !channel_.input().empty()) break;
    if (more) {
      more = Read();
      ++reads;
    }
  }
  advancing_ = false;
  if (state_ == State::kClosed) return;
  if (answers == Answers::kLater && channel_.pending() > 0 && channel_.pending() <= max_unsent()) {
    return listener_.reactor().Again(*this);
  }
  const bool gives_way = turn_ >= kMaxTurn || channel_.pending() > max_unsent() ||
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
      // Only an authenticated client gets a larger buffer.
      if (channel_.Compact()) return true;
      if (rights_ != Rights::kNone && channel_.Grow(kMaxCommand)) return true;
      Refuse("Protocol error: too big a command");
      return false;
    case Channel::Got::kEnd:
      // As in `printf ... | nc`: the commands before the end are still answered.
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
         !channel_.input().empty() && channel_.pending() <= max_unsent()) {
    if (access_ != frontend().pipeline().snapshot()->access) CheckRights();
    switch (parser_.Parse(channel_.input(),
                          rights_ == Rights::kNone ? kUnauthenticated : kAuthenticated)) {
      case Progress::kMore:
        StartPrepared();
        if (rights_ == Rights::kNone && channel_.input().size() > kMaxUnauthenticated) {
          Refuse("Protocol error: too big a command before authentication");
        }
        return;
      case Progress::kBad:
        StartPrepared();
        return Refuse(parser_.problem());
      case Progress::kNothing:
        break;
      case Progress::kCommand: {
        const Arguments arguments = parser_.arguments();
        const RespWordInfo* const word = FindRespWord(arguments.front());
        // The commands before this one are answered first.
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
          (void)RecordFailure(AuthFailure::Reason::kMissing, arguments.front().substr(0, 64));
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
  channel_.out() << "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n"
                    "X-Content-Type-Options: nosniff\r\n\r\n"
                    "This port speaks the Redis protocol; HTTP has a port of its own.\n";
  channel_.Drop(channel_.input().size());
  state_ = State::kEnding;
}

// --- Decisions -------------------------------------------------------------------

void RespConnection::Decide(const RespWordInfo& word, Arguments arguments) {
  if (rights_ == Rights::kNone) {
    RecordUnknown(word.name);
    return ReplyError("NOAUTH Authentication required.");
  }
  // Every command that changes something concerns the quota of others: it gives quota back, debits,
  // or extends a lease.
  if (word.kind == RespWordInfo::Kind::kChanges && rights_ != Rights::kAll) {
    const Tokens::Token* const token = token_.empty() ? nullptr : access_->tokens.Find(token_);
    const bool by_certificate = token_.empty() && peer_.verified;
    (void)RecordFailure(AuthFailure::Reason::kRights, word.name,
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
  if (word.word == RespWord::kThrottle ? PrepareThrottle(call, arguments, problem)
                                       : PrepareQuestion(call, word, arguments, problem)) {
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

bool RespConnection::PrepareQuestion(DecisionCall& call, const RespWordInfo& word,
                                     Arguments arguments, std::string& problem) {
  Question question(call.memory());
  problem = ReadRespQuestion(word, arguments, question, call.Attached<RespPending>().form);
  if (!problem.empty()) return false;
  if (auto bad =
          Resolve(question, KindOf(word.word), InlineQuotas::kRefused, call, call.memory())) {
    problem = std::move(bad->message);
    return false;
  }
  barrier_ = word.kind == RespWordInfo::Kind::kChanges;
  return true;
}

void RespConnection::Append(DecisionCallPtr call) noexcept {
  if (first_ == nullptr) {
    first_ = call.get();
  } else {
    last_->Attached<RespPending>().next = call.get();
  }
  last_ = call.release();
  ++waiting_;
}

void RespConnection::StartPrepared() {
  unstarted_ = 0;
  // The list contains errors too; they are ready and need no start.
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

/// Arms the deadline of the event that the connection waits for next.
void RespConnection::Settle() {
  if (state_ == State::kClosed) return;
  // The deadline for authentication is fixed: no other input prolongs it.
  if (rights_ == Rights::kNone && state_ == State::kOpen && !draining_) {
    return channel_.Rest() ? Arm(Kind::kHeader) : Close();
  }
  if (channel_.blocked()) return Arm(Kind::kWrite);
  if (state_ == State::kEnding && first_ == nullptr) {
    channel_.Drop(channel_.input().size());
    (void)channel_.Rest();  // Empty, so it needs no budget.
    channel_.ShutdownAndDropInput();
    if (channel_.hung_up()) return Close();
    state_ = State::kLingers;
    armed_ = false;
    Arm(Kind::kLinger);
    if (channel_.readable()) listener_.reactor().Again(*this);
    return;
  }
  if (state_ == State::kLingers) {
    channel_.Drop(channel_.input().size());
    (void)channel_.Rest();
    return;
  }
  const bool idle = first_ == nullptr && channel_.input().empty();
  if (first_ == nullptr && !channel_.Rest()) {
    net::HttpStats::Add(listener_.stats().refused);
    return Close();
  }
  if (idle) {
    if (draining_) return Arm(Kind::kLinger);
    if (channel_.received() == 0) return Arm(listener_.options().silent_deadline);
    if (rights_ != Rights::kAll && token_.empty()) return Arm(Kind::kIdle);
  } else if (first_ == nullptr && !channel_.input().empty() && turn_ < kMaxTurn) {
    return Arm(Kind::kBody);
  }
  // An authenticated client may be idle without limit, as with Redis, and a call of the store has a
  // deadline of its own.
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
      if (progress >= listener_.options().min_progress) return Arm(kind);
      break;
    case Kind::kLinger:
      // A command arrived while the listener was draining: answer it first.
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
