// SPDX-License-Identifier: Apache-2.0
#include <sys/epoll.h>

#include <algorithm>
#include <span>
#include <utility>

#include "net/http_listener.hpp"

namespace tidegate::net {
namespace {

/// Responses to pipelined requests are sent when this many bytes are waiting.
constexpr std::size_t kFlushBytes = 64u << 10;
/// The most reads, and requests, of one connection in a row before others get their turn.
constexpr int kMaxReads = 16;
constexpr int kMaxRequests = 64;

/// The value of HttpConnection::request_bytes_ while the end of a chunked body is unknown.
constexpr std::size_t kUnknownLength = static_cast<std::size_t>(-1) / 4;

}  // namespace

HttpConnection::HttpConnection(HttpListener& listener, Accepted accepted)
    : ServerConnection(listener, std::move(accepted), listener.buffers()), listener_(listener) {}

HttpConnection::~HttpConnection() {
  if (state_ == State::kHandling && exchange_->aborted_ != nullptr) {
    exchange_->aborted_(exchange_->abort_context_);
  }
  GiveExchange();
}

void HttpConnection::GiveExchange() noexcept {
  if (exchange_ != nullptr) listener_.exchanges().Give(std::move(exchange_));
}

bool HttpConnection::OnClosed() {
  const bool handling = state_ == State::kHandling;
  state_ = State::kClosing;
  channel_.Close(handling ? Channel::Input::kKept : Channel::Input::kDropped);
  (void)HoldPending();
  if (handling) {
    // The exchange and its buffer stay until the handler has answered, unless it allows an abort.
    if (exchange_->aborted_ == nullptr) return false;
    exchange_->aborted_(exchange_->abort_context_);
  }
  GiveExchange();
  return true;
}

void HttpConnection::OnReady(std::uint32_t events) {
  if (closed()) return;
  channel_.OnEvents(events);
  // No response can be sent on a reset connection. (A client that only ended its half still reads.)
  if (state_ == State::kHandling && (events & EPOLLERR) != 0) return Close();
  turn_ = 0;
  if (lingering()) return DropInput();
  try {
    if ((events & EPOLLOUT) != 0 && sending()) Flush();
    if (!closed()) Advance();
  } catch (const std::bad_alloc&) {
    // Out of memory: give up this connection so that the others can go on.
    advancing_ = false;
    Close();
  }
}

void HttpConnection::Advance() {
  advancing_ = true;
  int reads = 0;
  Process();  // Input may be left from when a response was awaited or could not be sent.
  while (channel_.readable() && !sending() && turn_ < kMaxRequests && reads < kMaxReads &&
         state_ == State::kReading) {
    ++reads;
    if (!Read()) break;
    Process();
  }
  if ((turn_ >= kMaxRequests || (reads == kMaxReads && channel_.readable())) && !closed()) {
    listener_.reactor().Again(*this);
  }
  advancing_ = false;
  ArmNext();
}

bool HttpConnection::Read() {
  if (exchange_ == nullptr && !channel_.input().empty()) channel_.Shrink();
  const char* const before = channel_.input().data();
  switch (channel_.Fill()) {
    case Channel::Got::kBytes:
      if (std::exchange(silent_, false)) Arm(Kind::kIdle);
      if (channel_.input().data() != before) ParseAgain();
      return true;
    case Channel::Got::kNothing: return false;
    case Channel::Got::kFull: MakeRoom(); return true;
    case Channel::Got::kEnd:
    case Channel::Got::kBroken: Close();  // All complete requests have been answered.
  }
  return false;
}

/// Doubles the buffer if it is full, but takes no more than a body of known length needs.
void HttpConnection::MakeRoom() {
  if (!channel_.Compact()) {
    const std::size_t held = channel_.input().size();
    const bool body = exchange_ != nullptr;
    const std::size_t capacity =
        body ? std::max(held + 1, std::min(request_bytes_, 2 * held)) : 2 * held;
    using Use = BufferBudget::Use;
    if (!channel_.GrowTo(capacity, body ? Use::kChecked : Use::kUnchecked)) {
      return Refuse({503, kNoBuffer});
    }
  }
  ParseAgain();
}

/// Parses the head again after the buffer has moved, because the views of the head point into it.
void HttpConnection::ParseAgain() noexcept {
  if (exchange_ == nullptr) return;
  parser_.Reset();
  (void)parser_.Parse(channel_.input(), listener_.options().limits, exchange_->head_);
}

void HttpConnection::Process() {
  while (state_ == State::kReading && !sending() && turn_ < kMaxRequests && Step()) {
    if (channel_.pending() >= kFlushBytes) Flush();
  }
  Flush();
}

/// Handles one request, if it is complete. Returns false if no request was handled.
bool HttpConnection::Step() {
  if (exchange_ == nullptr) {
    if (channel_.input().empty()) return false;
    exchange_ = listener_.exchanges().Take();
    exchange_->connection_ = this;
    const Parsed parsed =
        parser_.Parse(channel_.input(), listener_.options().limits, exchange_->head_);
    if (parsed != Parsed::kDone) {
      GiveExchange();
      if (parsed == Parsed::kRefused) Refuse(parser_.refusal());
      return false;
    }
    if (exchange_->head_.unknown_expect) {
      Refuse(kUnknownExpect);
      return false;
    }
    head_bytes_ = parser_.consumed();
    head_checked_ = false;
  }
  if (!HasBody()) return false;
  HttpStats::Add(listener_.stats().requests);
  ++turn_;
  state_ = State::kHandling;
  active_ = true;
  last_ = draining_ || !exchange_->head_.keep_alive;
  listener_.handler().Handle(*exchange_);
  return true;
}

bool HttpConnection::HasBody() {
  const HttpHead& head = exchange_->head_;
  if (head.body == BodyFraming::kChunked) return HasChunkedBody();
  const std::size_t length = head.body == BodyFraming::kLength ? head.content_length : 0;
  request_bytes_ = head_bytes_ + length;
  if (channel_.input().size() < request_bytes_) {
    AwaitBody();
    return false;
  }
  exchange_->body_ = channel_.input().substr(head_bytes_, length);
  return true;
}

bool HttpConnection::HasChunkedBody() {
  const std::span<char> body = channel_.raw().subspan(head_bytes_);
  switch (chunks_.Decode(body, BodyLimits())) {
    case Parsed::kRefused: Refuse(chunks_.refusal()); return false;
    case Parsed::kMore:
      // Removes the framing that has been read, to make room for more input.
      channel_.Erase(head_bytes_ + chunks_.decoded(), chunks_.raw() - chunks_.decoded());
      chunks_.Compacted();
      // The rest may have any length: let the buffer double.
      request_bytes_ = kUnknownLength;
      AwaitBody();
      return false;
    case Parsed::kDone: break;
  }
  exchange_->body_ = {body.data(), chunks_.decoded()};
  request_bytes_ = head_bytes_ + chunks_.raw();
  chunks_.Reset();
  return true;
}

HttpLimits HttpConnection::BodyLimits() const noexcept {
  HttpLimits limits = listener_.options().limits;
  if (head_checked_) limits.body_bytes = body_limit_;
  return limits;
}

void HttpConnection::AwaitBody() {
  if (std::exchange(head_checked_, true)) return;
  // A response before the body has arrived is the last one on this connection.
  const bool last = std::exchange(last_, true);
  linger_ = true;
  state_ = State::kHandling;
  const auto limit = listener_.handler().OnHead(*exchange_);
  if (!limit) {
    HttpStats::Add(listener_.stats().requests);
    ++turn_;
    chunks_.Reset();
    return;
  }
  last_ = last;
  linger_ = false;
  state_ = State::kReading;
  const HttpHead& head = exchange_->head_;
  body_limit_ = std::min(*limit, listener_.options().limits.body_bytes);
  if (head.body == BodyFraming::kLength ? head.content_length > body_limit_
                                        : chunks_.decoded() > body_limit_) {
    return Refuse({413, "request body is longer than this endpoint accepts"});
  }
  if (head.expects_continue) channel_.out() << "HTTP/1.1 100 Continue\r\n\r\n";
}

void HttpConnection::Refuse(const HttpRefusal& refusal) {
  HttpStats::Add(listener_.stats().refused);
  const bool head_method = exchange_ != nullptr && exchange_->head_.method == "HEAD";
  GiveExchange();
  last_ = true;
  linger_ = true;
  listener_.answers().Add(refusal.status);
  WriteRefusal(channel_.out(), refusal, head_method ? RefusalBody::kOmitted : RefusalBody::kSent);
  state_ = State::kClosing;
}

void HttpConnection::FinishExchange() {
  GiveExchange();
  parser_.Reset();
  if (closed()) return Release();  // The client has disconnected before the answer.
  // If the response did not wait for the body, all of the input is dropped.
  channel_.Drop(std::min(channel_.input().size(), request_bytes_));
  state_ = last_ ? State::kClosing : State::kReading;
  if (!advancing_) Advance();  // The response was sent later, outside Advance.
}

void HttpConnection::Flush() {
  const bool was_sending = sending();
  if (!channel_.Flush() || !HoldPending()) return Close();
  if (sending() && !was_sending) Arm(Kind::kWrite);
}

bool HttpConnection::HoldPending() noexcept {
  const std::size_t pending = channel_.pending();
  if (BufferBudget* const budget = listener_.options().budget) {
    return budget->Adjust(pending_held_, pending, BufferBudget::Use::kUnchecked);
  }
  pending_held_ = pending;
  return true;
}

/// Arms the deadline of the event that the connection waits for next.
void HttpConnection::ArmNext() {
  if (closed() || lingering() || sending() || state_ == State::kHandling) return;
  if (state_ == State::kClosing) {
    return !linger_ && !draining_ && !channel_.readable() ? Close() : Linger();
  }
  if (exchange_ != nullptr) return AwaitRequest(Kind::kBody);
  const bool idle = channel_.input().empty();
  channel_.Shrink();
  AwaitRequest(idle ? idle_deadline() : Kind::kHeader);
}

void HttpConnection::OnDeadline(Kind kind) {
  // The handler waits for the store, which has a deadline of its own.
  if (state_ == State::kHandling && !sending()) return Arm(kind);
  if (const auto refusal = CheckDeadline(kind)) {
    Refuse(*refusal);
    Flush();
    ArmNext();
  }
}

}  // namespace tidegate::net
