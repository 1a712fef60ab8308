// SPDX-License-Identifier: Apache-2.0
#include "gateway/client_connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/gateway.hpp"
#include "gateway/passage.hpp"

namespace tidegate {
namespace {

using net::Channel;
using net::Deadlines;
using net::Parsed;

/// Requests of one connection in a row before other connections get their turn.
constexpr int kMaxRequests = 32;
/// The most bytes of a body that are read and dropped after its answer, so that the connection can
/// be used again; for a longer body a new connection costs less.
constexpr std::uint64_t kMaxSkipped = 64u << 10;
/// The most bytes that are read and dropped before a close.
constexpr std::size_t kMaxLinger = 1u << 20;
}  // namespace

ClientConnection::ClientConnection(GatewayListener& listener, net::Accepted accepted)
    : listener_(listener), peer_(accepted.peer), channel_(listener.gateway().buffers()) {
  channel_.Open(std::move(accepted.socket), std::move(accepted.tls));
}

ClientConnection::~ClientConnection() = default;

void ClientConnection::Start() {
  draining_ = listener_.draining();
  Arm(draining_ ? Deadlines::Kind::kLinger : listener_.options().silent_deadline);
  if (!listener_.reactor().Watch(channel_.fd(), *this)) Close();
}

void ClientConnection::Drain() {
  draining_ = true;
  // One whose last answer has not been taken yet ends when it has.
  if (state_ == State::kHead && channel_.input().empty() && !channel_.blocked()) {
    Arm(Deadlines::Kind::kLinger);
  }
}

void ClientConnection::Arm(Deadlines::Kind kind) noexcept {
  armed_ = kind;
  active_ = false;
  progress_mark_ = channel_.received() + channel_.sent();
  listener_.reactor().deadlines().Arm(*this, kind, listener_.reactor().now());
}

void ClientConnection::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  Deadlines::Disarm(*this);
  if (Passage* const passage = std::exchange(passage_, nullptr)) {
    // Where the end of the connection is the end of the body, only a reset says that this was not
    // all.
    if (close_delimited_) channel_.Abort();
    passage->OnClientGone();  // It copies what it needs of the head, which stands in our buffer.
  }
  channel_.Close();
  listener_.OnGone(*this);
}

void ClientConnection::OnReady(std::uint32_t events) {
  if (state_ == State::kClosed) return;
  channel_.OnEvents(events);
  turn_ = 0;
  if (state_ == State::kPassing) {
    if (channel_.hung_up()) LookForEnd();
    if (passage_ != nullptr) passage_->OnClientReady();
    return;
  }
  Advance();
}

/// A client that has ended its half while it waits for an answer is taken for gone, as other
/// proxies do: those that only half-close are rare, those that vanish are not, and what they asked
/// for should not be worked at.
void ClientConnection::LookForEnd() {
  if (switched_) return;  // There a half-close means something.
  if (channel_.reset()) return Close();
  // Behind the request stands another: whether there is an end behind that cannot be seen.
  const std::size_t own = head_there_ ? head_bytes_ + WholeBody().value_or("").size()
                          : chunked_  ? reader_.eaten()
                                      : 0;
  if (body_done_ && channel_.input().size() > own) return;
  if (channel_.tls() != nullptr) {
    // The goodbye is within TLS. What the body still lacks, the passage reads, and finds its end.
    if (!body_done_) return;
    const Channel::Got got = channel_.Fill();
    if (got == Channel::Got::kEnd || got == Channel::Got::kBroken) Close();
    return;
  }
  char byte = 0;
  const ssize_t got = ::recv(channel_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) Close();
}

void ClientConnection::Advance() {
  advancing_ = true;
  while (state_ != State::kClosed) {
    if (channel_.blocked()) {
      if (!channel_.Flush()) {
        advancing_ = false;
        return Close();
      }
      if (channel_.blocked()) break;
    }
    if (state_ == State::kHead && turn_ >= kMaxRequests) {
      listener_.reactor().Again(*this);
      break;
    }
    const bool more = state_ == State::kHead       ? ReadHead()
                      : state_ == State::kSkipping ? Skip()
                                                   : false;
    if (!more) break;
  }
  advancing_ = false;
  Settle();
}

// --- Requests -----------------------------------------------------------------

bool ClientConnection::ReadHead() {
  Gateway& gateway = listener_.gateway();
  while (true) {
    if (!channel_.input().empty()) {
      passage_ = gateway.TakePassage();
      switch (parser_.Parse(channel_.input(), listener_.options().limits, passage_->head())) {
        case Parsed::kDone:
          if (passage_->head().unknown_expect && RejectsUnknownExpect()) {
            gateway.GivePassage(std::exchange(passage_, nullptr));
            Refuse(net::kUnknownExpect);
            return false;
          }
          Begin();
          // The client's end of stream may have arrived with the request, without another event.
          if (state_ == State::kPassing && channel_.hung_up()) LookForEnd();
          return true;
        case Parsed::kRefused:
          gateway.GivePassage(std::exchange(passage_, nullptr));
          Refuse(net::HttpRefusal(parser_.refusal()));  // A copy: Refuse resets the parser.
          return false;
        case Parsed::kMore:
          gateway.GivePassage(std::exchange(passage_, nullptr));
      }
    }
    switch (channel_.Fill()) {
      case Channel::Got::kBytes:
        if (std::exchange(silent_, false)) Arm(Deadlines::Kind::kIdle);
        break;
      case Channel::Got::kNothing:
        return false;
      case Channel::Got::kFull:
        if (channel_.Grow(listener_.options().limits.header_bytes)) break;
        Refuse({431, "request head is longer than the limit"});
        return false;
      case Channel::Got::kEnd:
      case Channel::Got::kBroken:
        Close();
        return false;
    }
  }
}

bool ClientConnection::RejectsUnknownExpect() {
  const auto& snapshot = listener_.gateway().pipeline().snapshot();
  return snapshot->routes->gateway().unknown_expect == GatewaySpec::UnknownExpect::kReject;
}

void ClientConnection::Begin() {
  const net::HttpHead& head = passage_->head();
  net::HttpStats::Add(listener_.stats().requests);
  ++turn_;
  active_ = true;
  state_ = State::kPassing;
  head_bytes_ = parser_.consumed();
  parser_.Reset();
  received_before_ = channel_.received() - channel_.input().size();
  sent_before_ = channel_.sent();
  head_there_ = true;
  chunked_ = head.body == net::HttpBody::kChunked;
  length_ = head.body == net::HttpBody::kLength ? head.content_length : 0;
  body_done_ = !chunked_ && length_ == 0;
  expects_continue_ = head.expects_continue;
  head_method_ = head.method == "HEAD";
  minor_ = head.minor;
  // What a client sends behind CONNECT may be meant for the tunnel that it does not get.
  last_ = draining_ || !head.keep_alive || head.method == "CONNECT";
  switched_ = close_delimited_ = false;
  reader_.Begin(head.body, head.content_length);
  passage_->Begin(*this);
}

std::optional<std::string_view> ClientConnection::WholeBody() const {
  if (body_done_) return std::string_view{};
  if (chunked_ || !head_there_) return std::nullopt;
  const std::string_view there = channel_.input().substr(head_bytes_);
  if (there.size() < length_) return std::nullopt;
  return there.substr(0, static_cast<std::size_t>(length_));
}

ClientStream::Body ClientConnection::ReadBody() {
  if (std::exchange(head_there_, false)) channel_.Drop(head_bytes_);
  if (body_done_) return Body::kEnd;
  while (true) {
    const Parsed parsed = reader_.Read(channel_.raw());
    if (parsed == Parsed::kRefused) {
      last_ = true;
      return Body::kRefused;
    }
    body_done_ = parsed == Parsed::kDone;
    if (!reader_.data().empty()) return Body::kData;
    if (body_done_) return Body::kEnd;
    channel_.Drop(reader_.eaten());
    switch (channel_.Fill()) {
      case Channel::Got::kBytes:
        expects_continue_ = false;
        break;
      case Channel::Got::kNothing:
        // A few bytes of a chunk's framing at most, so it needs no room in the budget.
        (void)channel_.Rest();
        return Body::kWait;
      case Channel::Got::kFull:
        if (channel_.Compact()) break;
        last_ = true;
        return Body::kRefused;
      case Channel::Got::kEnd:
        if (!reader_.EndsAtClose()) return Body::kGone;
        body_done_ = true;
        return Body::kEnd;
      case Channel::Got::kBroken:
        return Body::kGone;
    }
  }
}

void ClientConnection::TakeBody() {
  // The trailers behind the last chunk are still to be passed on.
  if (!body_done_ || !chunked_) channel_.Drop(reader_.eaten());
}

void ClientConnection::LeaveBody() {
  if (const auto whole = WholeBody(); whole && head_there_) {
    channel_.Drop(head_bytes_ + whole->size());
    head_there_ = false;
    body_done_ = true;
    return;
  }
  if (std::exchange(head_there_, false)) channel_.Drop(head_bytes_);
  if (body_done_) {
    // Trailers that were passed on stand in the buffer until here.
    if (chunked_) channel_.Drop(reader_.eaten());
    return;
  }
  if (last_) return;
  last_ = MuchToCome();
  if (!last_) state_ = State::kSkipping;
}

/// Without what stands behind the request: that is the next one's.
std::uint64_t ClientConnection::received() const noexcept {
  const std::uint64_t all = channel_.received() - received_before_;
  if (switched_) return all;
  std::size_t own = head_there_ ? head_bytes_ : 0;
  if (const auto whole = WholeBody(); whole && head_there_) {
    own += whole->size();
  } else if (!body_done_) {
    return all;
  } else if (chunked_) {
    own += reader_.eaten();
  }
  return all - (channel_.input().size() - std::min(own, channel_.input().size()));
}

/// Who waits for a word to send it may, or may not, after an answer: nobody can tell what would
/// come next. And what is long is not worth waiting for.
bool ClientConnection::MuchToCome() const noexcept {
  const std::uint64_t come = received() - std::min<std::uint64_t>(received(), head_bytes_);
  return expects_continue_ || (!chunked_ && length_ > come + kMaxSkipped);
}

bool ClientConnection::Skip() {
  while (true) {
    switch (ReadBody()) {
      case Body::kData:
        TakeBody();
        if (received() > 2 * kMaxSkipped) {
          Linger();
          return false;
        }
        break;
      case Body::kWait:
        return false;
      case Body::kEnd:
        if (chunked_) channel_.Drop(reader_.eaten());
        state_ = State::kHead;
        return true;
      case Body::kRefused:
        Linger();
        return false;
      case Body::kGone:
        Close();
        return false;
    }
  }
}

// --- Ends ---------------------------------------------------------------------

void ClientConnection::Linger() {
  channel_.Drop(channel_.input().size());
  (void)channel_.Rest();  // Empty, so it needs no budget.
  channel_.ShutdownAndDropInput();
  state_ = State::kLingering;
  Arm(Deadlines::Kind::kLinger);
}

/// After all that could be done at once: what is waited for next, and for how long.
void ClientConnection::Settle() {
  using Kind = Deadlines::Kind;
  switch (state_) {
    case State::kHead: {
      if (channel_.blocked()) {
        if (armed_ != Kind::kWrite) Arm(Kind::kWrite);
        return;
      }
      // Not if this connection has only given way to others: its input may hold whole requests, and
      // a head that is parsed in a small buffer would move with the next read.
      if (turn_ < kMaxRequests && !channel_.Rest()) {
        Refuse({503, net::kNoBuffer});
        return Settle();
      }
      Kind kind = draining_ ? Kind::kLinger
                  : silent_ ? listener_.options().silent_deadline
                            : Kind::kIdle;
      if (!channel_.input().empty()) kind = Kind::kHeader;
      // What has begun behind an answered request has a deadline of its own.
      if (kind != armed_ || (active_ && kind == Kind::kHeader)) Arm(kind);
      return;
    }
    case State::kSkipping:
      if (armed_ != Kind::kBody) Arm(Kind::kBody);
      return;
    case State::kClosing:
      if (channel_.blocked()) {
        if (armed_ != Kind::kWrite) Arm(Kind::kWrite);
        return;
      }
      // Nothing is on its way here, as far as one can tell.
      if (body_done_ && !draining_ && !channel_.readable() && channel_.input().empty()) {
        return Close();
      }
      Linger();
      [[fallthrough]];
    case State::kLingering:
      while (true) {
        switch (channel_.Fill()) {
          case Channel::Got::kBytes:
            channel_.Drop(channel_.input().size());
            (void)channel_.Rest();
            if (channel_.received() + channel_.sent() - progress_mark_ > kMaxLinger) {
              return Close();
            }
            break;
          case Channel::Got::kNothing:
          case Channel::Got::kFull:
            return;
          case Channel::Got::kEnd:
          case Channel::Got::kBroken:
            return Close();
        }
      }
    case State::kPassing:
    case State::kClosed:
      return;
  }
}

void ClientConnection::OnDeadline(Deadlines::Kind kind) {
  using Kind = Deadlines::Kind;
  if (state_ == State::kPassing) return Arm(kind);  // The passage has deadlines of its own.
  const std::size_t progress = channel_.received() + channel_.sent() - progress_mark_;
  switch (kind) {
    case Kind::kIdle:
      if (!active_) return Close();
      return Arm(kind);
    case Kind::kHeader:
      if (silent_) return Close();
      Refuse({408, "request head did not arrive in time"});
      return Settle();
    case Kind::kBody:
    case Kind::kWrite:
      if (progress < listener_.options().min_progress) return Close();
      return Arm(kind);
    default:
      return Close();
  }
}

}  // namespace tidegate
