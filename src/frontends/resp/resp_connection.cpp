// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/resp_frontend.hpp"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "base/message_text.hpp"

namespace tidegate {
namespace {

using net::Channel;
using Arguments = std::span<const std::string_view>;

/// The most commands, and reads, of one connection before other connections get their turn.
constexpr int kMaxTurn = 1024;
constexpr int kMaxReads = 16;
/// The maximum number of pending calls of one connection. Further commands stay in the socket.
constexpr std::size_t kMaxWaiting = 1024;
/// The maximum number of commands that are prepared before the first of them is started.
constexpr int kMaxPrepared = 16;
/// The maximum size of one command in bytes, with all its elements.
constexpr std::size_t kMaxCommand = 256u << 10;
/// While more bytes of replies than this are unsent, no command is started: before and after
/// authentication.
constexpr std::size_t kMaxUnsentUnauthenticated = 2u << 10;
constexpr std::size_t kMaxUnsent = 256u << 10;

/// Limits of a command before and after authentication. `HELLO 3 AUTH name token SETNAME name` has
/// 7 elements. The longest element is the client's name, with up to 256 bytes.
constexpr net::RespLimits kUnauthenticated{.elements = 10, .bulk_bytes = 512};
constexpr net::RespLimits kAuthenticated{};
/// The maximum size of an incomplete command in bytes, before authentication.
constexpr std::size_t kMaxUnauthenticated = 1024;
constexpr std::string_view kTooBig = "Protocol error: the command is longer than 262144 bytes";
static_assert(kMaxCommand == 262144);
constexpr std::string_view kTooBigUnauthenticated =
    "Protocol error: the command is longer than 1024 bytes, the limit before authentication";
static_assert(kMaxUnauthenticated == 1024);

/// Lets TCP detect peers that vanished: authenticated clients have no idle timeout.
void KeepAlive(int socket) noexcept {
  const auto set = [socket](int level, int option, int value) {
    (void)setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 120);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 30);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

/// Returns true for `GET / HTTP/1.1` and `Host: ...`: the client is a browser, and an attacker's
/// page may have sent the request.
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
    : ServerConnection(listener, std::move(accepted), listener.frontend().buffers()),
      listener_(listener),
      id_(RespFrontend::NextId()) {
  KeepAlive(channel_.fd());
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

void RespConnection::OnReady(std::uint32_t events) {
  if (closed()) return;
  channel_.OnEvents(events);
  if (lingering()) return DropInput();
  // No reply can be sent on a reset connection, so the calls in progress are dropped.
  if ((events & EPOLLERR) != 0 && first_ != nullptr) return Close();
  turn_ = 0;
  try {
    Advance(events != 0 && listener_.reactor().crowded() ? Answers::kLater : Answers::kNow);
  } catch (const std::bad_alloc&) {
    advancing_ = false;
    Close();  // Out of memory: close this connection so that the others can continue.
  }
}

void RespConnection::Advance(Answers answers) {
  if (!channel_.Flush()) return Close();
  advancing_ = true;
  int reads = 0;
  bool more = true;
  while (more && !closed()) {
    WriteReady();
    Process();
    more = state_ == State::kOpen;
    if (turn_ >= kMaxTurn || reads == kMaxReads || channel_.pending() > max_unsent()) break;
    // Do not read more while commands that have been read must wait to be started.
    if (more && waiting_ > 0 && !channel_.input().empty()) break;
    if (more) {
      more = Read();
      ++reads;
    }
  }
  advancing_ = false;
  if (closed()) return;
  if (answers == Answers::kLater && channel_.pending() > 0 && channel_.pending() <= max_unsent()) {
    return listener_.reactor().Again(*this);
  }
  const bool gives_way = turn_ >= kMaxTurn || channel_.pending() > max_unsent() ||
                         (reads == kMaxReads && channel_.readable());
  if (!channel_.Flush()) return Close();
  if (gives_way && !channel_.blocked()) listener_.reactor().Again(*this);
  ArmNext();
}

bool RespConnection::Read() {
  switch (channel_.Fill()) {
    case Channel::Got::kBytes: return true;
    case Channel::Got::kNothing: return false;
    case Channel::Got::kFull:
      // Only an authenticated client gets a larger buffer.
      if (channel_.Compact()) return true;
      if (rights_ != Rights::kNone && channel_.Grow(kMaxCommand)) return true;
      Refuse(rights_ == Rights::kNone ? kTooBigUnauthenticated : kTooBig);
      return false;
    case Channel::Got::kEnd:
      // The input ended, as in `printf ... | nc`: commands before the end are still answered.
      state_ = State::kEnding;
      return false;
    case Channel::Got::kBroken: Close(); return false;
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
          Refuse(kTooBigUnauthenticated);
        }
        return;
      case Progress::kBad: StartPrepared(); return Refuse(parser_.problem());
      case Progress::kNothing: break;
      case Progress::kCommand: {
        const Arguments arguments = parser_.arguments();
        const RespCommandInfo* const command = FindRespCommand(arguments.front());
        // This command must wait until the commands before it are answered.
        if (waiting_ > 0 &&
            (command == nullptr || command->kind != RespCommandInfo::Kind::kDecision)) {
          StartPrepared();
          if (waiting_ > 0) return;
        }
        ++turn_;
        net::HttpStats::Add(listener_.stats().requests);
        if (command != nullptr) {
          if (command->kind == RespCommandInfo::Kind::kConnection) {
            ExecuteHere(*command, arguments);
          } else {
            Decide(*command, arguments);
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
  channel_.out()
      << "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n"
         "X-Content-Type-Options: nosniff\r\n\r\n"
         "This port serves the Redis protocol; send HTTP requests to the port of the API.\n";
  channel_.Drop(channel_.input().size());
  state_ = State::kEnding;
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

void RespConnection::ArmNext() {
  if (closed() || lingering()) return;
  // The deadline for authentication is fixed: other input does not extend it.
  if (rights_ == Rights::kNone && state_ == State::kOpen && !draining_) {
    return channel_.Rest() ? Await(Kind::kHeader) : Close();
  }
  if (channel_.blocked()) return Await(Kind::kWrite);
  if (state_ == State::kEnding && first_ == nullptr) {
    return channel_.hung_up() ? Close() : Linger();
  }
  const bool idle = first_ == nullptr && channel_.input().empty();
  if (first_ == nullptr && !channel_.Rest()) {
    net::HttpStats::Add(listener_.stats().refused);
    return Close();
  }
  if (idle) {
    if (draining_) return Await(Kind::kLinger);
    if (channel_.received() == 0) return Await(listener_.options().silent_deadline);
    if (rights_ != Rights::kAll && token_.empty()) return Await(Kind::kIdle);
  } else if (first_ == nullptr && turn_ < kMaxTurn) {
    return Await(Kind::kBody);
  }
  // Authenticated clients may be idle without limit, and calls have deadlines of their own.
  net::Deadlines::Disarm(*this);
}

void RespConnection::OnDeadline(Kind kind) {
  const bool slow = kind == Kind::kBody || kind == Kind::kWrite;
  // A command that arrived while the listener was draining is answered first.
  const bool busy =
      state_ == State::kOpen && !lingering() && (first_ != nullptr || !channel_.input().empty());
  const bool goes_on = (slow && fast_enough()) || (kind == Kind::kIdle && progress() > 0) ||
                       (kind == Kind::kLinger && busy);
  goes_on ? Arm(kind) : Close();
}

}  // namespace tidegate
