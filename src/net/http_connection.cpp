// SPDX-License-Identifier: Apache-2.0
#include "net/http_connection.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/http_listener.hpp"

namespace tidegate::net {
namespace {

/// The most bytes that are read and dropped after a rejected request.
constexpr std::size_t kMaxLinger = 1u << 20;
/// Answers to pipelined requests are sent when so many bytes have come together.
constexpr std::size_t kFlushBytes = 64u << 10;
// The C library's recv and send are points of cancellation, which threads of ours never are: its
// book-keeping around them is 1 % of a request.
ssize_t ReceivePlain(int socket, char* data, std::size_t size) noexcept {
  return syscall(SYS_recvfrom, socket, data, size, 0, nullptr, nullptr);
}
ssize_t SendPlain(int socket, const char* data, std::size_t size) noexcept {
  return syscall(SYS_sendto, socket, data, size, MSG_NOSIGNAL, nullptr, 0);
}
/// What TLS says, as the system would say it.
ssize_t AsSystem(ssize_t result) noexcept {
  if (result >= 0) return result;
  errno = result == kIoWait ? EAGAIN : ECONNRESET;
  return -1;
}

/// Reads, and requests, of one connection in a row before other connections get their turn.
constexpr int kMaxReads = 16;
constexpr int kMaxRequests = 64;

/// HttpConnection::request_bytes_ while the end of a chunked body is unknown.
constexpr std::size_t kUnknownLength = static_cast<std::size_t>(-1) / 4;

}  // namespace

HttpConnection::HttpConnection(HttpListener& listener, Accepted accepted)
    : listener_(listener),
      socket_(std::move(accepted.socket)),
      peer_(accepted.peer),
      tls_(std::move(accepted.tls)),
      readable_(tls_ != nullptr) {  // What is within TLS already, no event will tell of.
  buffer_ = own_.data();
}

ssize_t HttpConnection::Receive(char* data, std::size_t size) {
  if (tls_ == nullptr) [[likely]]
    return ReceivePlain(socket_.get(), data, size);
  return AsSystem(tls_->Read(data, size));
}

ssize_t HttpConnection::Send(const char* data, std::size_t size) {
  if (tls_ == nullptr) [[likely]]
    return SendPlain(socket_.get(), data, size);
  return AsSystem(tls_->Write(data, size));
}

HttpConnection::~HttpConnection() {
  if (state_ == State::kHandling && exchange_->aborted_ != nullptr) {
    exchange_->aborted_(exchange_->abort_context_);
  }
  GiveExchange();
  DropLarge();
  DropPending();
}

void HttpConnection::Start() {
  draining_ = listener_.draining();
  Arm(draining_ ? Deadlines::Kind::kLinger : listener_.options().silent_deadline);
  if (!listener_.reactor().Watch(socket_.get(), *this)) Close();
}

void HttpConnection::Arm(Deadlines::Kind kind) noexcept {
  armed_ = kind;
  progress_ = 0;
  active_ = false;
  listener_.reactor().deadlines().Arm(*this, kind);
}

void HttpConnection::GiveExchange() noexcept {
  if (exchange_ != nullptr) listener_.reactor().exchanges().Give(std::move(exchange_));
}

void HttpConnection::Close() {
  if (state_ == State::kClosed) return;
  const bool handling = state_ == State::kHandling;
  state_ = State::kClosed;
  Deadlines::Disarm(*this);
  if (tls_ != nullptr) tls_->Close();
  socket_.Close();
  if (HttpConnection*& owner = listener_.reactor().out_owner(); owner == this) {
    owner = nullptr;
    listener_.reactor().out().Clear();
  }
  if (handling) {
    // Unless the handler can do without it, the exchange stays until it is answered.
    if (exchange_->aborted_ == nullptr) return;
    exchange_->aborted_(exchange_->abort_context_);
  }
  GiveExchange();
  listener_.OnGone(*this);
}

void HttpConnection::OnReady(std::uint32_t events) {
  if (state_ == State::kClosed) return;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) hung_up_ = true;
  // A reset connection takes no answer. (A client that only ended its own side still reads.)
  if (state_ == State::kHandling && (events & EPOLLERR) != 0) return Close();
  turn_ = 0;
  try {
    if ((events & EPOLLOUT) != 0 && sending()) SendPending();
    Advance();
  } catch (const std::bad_alloc&) {
    // Without memory for this one, the others shall go on.
    advancing_ = false;
    Close();
  }
}

void HttpConnection::Advance() {
  advancing_ = true;
  int reads = 0;
  Process();  // What was left when the last answer could not be sent, or was waited for.
  while (readable_ && !sending() && turn_ < kMaxRequests && reads < kMaxReads &&
         (state_ == State::kReading || state_ == State::kLingering)) {
    ++reads;
    if (!Read()) break;
    Process();
  }
  if ((turn_ >= kMaxRequests || (reads == kMaxReads && readable_)) && state_ != State::kClosed) {
    listener_.reactor().Again(*this);
  }
  advancing_ = false;
  Settle();
}

// --- Reading ------------------------------------------------------------------

bool HttpConnection::Read() {
  if (state_ == State::kLingering) begin_ = end_ = 0;
  ShrinkIfIdle();
  if (end_ == capacity_ && !MakeRoom(1)) return true;
  const std::size_t room = capacity_ - end_;
  const ssize_t got = Receive(buffer_ + end_, room);
  if (got > 0) {
    const auto bytes = static_cast<std::size_t>(got);
    if (silent_) {
      silent_ = false;
      Arm(Deadlines::Kind::kIdle);
    }
    progress_ += bytes;
    end_ += bytes;
    // Less than there was room for: that was all, unless the end of the stream follows unannounced.
    // TLS gives a record at a time.
    if (bytes < room && !hung_up_ && tls_ == nullptr) readable_ = false;
    return true;
  }
  if (got < 0 && errno == EINTR) return true;
  readable_ = false;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  // The other side has ended, or broken off. All whole requests have been answered.
  Close();
  return false;
}

/// Returns to the small buffer if the bytes in hand fit it.
void HttpConnection::ShrinkIfIdle() noexcept {
  if (exchange_ != nullptr) return;
  const std::size_t held = end_ - begin_;
  if (held == 0) begin_ = end_ = 0;
  if (large_ == nullptr || held > kInlineBytes / 2) return;
  std::memcpy(own_.data(), buffer_ + begin_, held);
  DropLarge();
  begin_ = 0;
  end_ = held;
}

void HttpConnection::DropLarge() noexcept {
  if (large_ == nullptr) return;
  if (BufferBudget* const budget = listener_.options().budget) budget->Return(capacity_);
  large_.reset();
  buffer_ = own_.data();
  capacity_ = kInlineBytes;
}

/// Moves the bytes in hand to the beginning of the buffer, and to a larger buffer if they need one.
/// Parses the head again if there is one, because its views point into the buffer.
bool HttpConnection::MakeRoom(std::size_t bytes) {
  const std::size_t held = end_ - begin_;
  const std::size_t needed = held + bytes;
  if (needed > capacity_) {
    // Twice as much as before, but not more than a body of known length needs.
    const std::size_t whole = exchange_ != nullptr ? request_bytes_ : capacity_ * 2;
    const std::size_t capacity = std::max(needed, std::min(whole, capacity_ * 2));
    std::unique_ptr<char[]> larger(new char[capacity]);
    BufferBudget* const budget = listener_.options().budget;
    const auto use =
        exchange_ == nullptr ? BufferBudget::Use::kUnchecked : BufferBudget::Use::kChecked;
    if (budget != nullptr && !budget->Take(capacity - (large_ == nullptr ? 0 : capacity_), use)) {
      Refuse({503, kNoBuffer});
      return false;
    }
    std::memcpy(larger.get(), buffer_ + begin_, held);
    large_ = std::move(larger);
    buffer_ = large_.get();
    capacity_ = capacity;
  } else if (begin_ > 0) {
    std::memmove(buffer_, buffer_ + begin_, held);
  }
  begin_ = 0;
  end_ = held;
  if (exchange_ != nullptr) {
    parser_.Reset();
    (void)parser_.Parse(input(), listener_.options().limits, exchange_->head_);
  }
  return true;
}

// --- Requests -----------------------------------------------------------------

void HttpConnection::Process() {
  while (state_ == State::kReading && !sending() && turn_ < kMaxRequests && Step()) {
    if (listener_.reactor().out().size() >= kFlushBytes) Flush();
  }
  Flush();
}

/// One request, if it is there. False: wait.
bool HttpConnection::Step() {
  if (exchange_ == nullptr) {
    if (begin_ == end_) return false;
    exchange_ = listener_.reactor().exchanges().Take();
    exchange_->connection_ = this;
    const Parsed parsed = parser_.Parse(input(), listener_.options().limits, exchange_->head_);
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
  if (head.body == HttpBody::kChunked) return HasChunkedBody();
  const std::size_t length = head.body == HttpBody::kLength ? head.content_length : 0;
  request_bytes_ = head_bytes_ + length;
  if (end_ - begin_ < request_bytes_) {
    AwaitBody();
    return false;
  }
  exchange_->body_ = {buffer_ + begin_ + head_bytes_, length};
  return true;
}

bool HttpConnection::HasChunkedBody() {
  char* const body = buffer_ + begin_ + head_bytes_;
  const std::size_t size = end_ - begin_ - head_bytes_;
  switch (chunks_.Decode({body, size}, BodyLimits())) {
    case Parsed::kRefused:
      Refuse(chunks_.refusal());
      return false;
    case Parsed::kMore:
      // The framing that has been read makes room for what comes.
      std::memmove(body + chunks_.decoded(), body + chunks_.raw(), size - chunks_.raw());
      end_ -= chunks_.raw() - chunks_.decoded();
      chunks_.Compacted();
      // The rest may have any length: let the buffer double.
      request_bytes_ = kUnknownLength;
      AwaitBody();
      return false;
    case Parsed::kDone:
      break;
  }
  exchange_->body_ = {body, chunks_.decoded()};
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
  // An answer without the body is the last one on this connection.
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
  if (head.body == HttpBody::kLength ? head.content_length > body_limit_
                                     : chunks_.decoded() > body_limit_) {
    return Refuse({413, "request body is longer than this endpoint takes"});
  }
  if (head.expects_continue) Out() << "HTTP/1.1 100 Continue\r\n\r\n";
}

void HttpConnection::Refuse(const HttpRefusal& refusal) {
  HttpStats::Add(listener_.stats().refused);
  const bool head_method = exchange_ != nullptr && exchange_->head_.method == "HEAD";
  GiveExchange();
  last_ = true;
  linger_ = true;
  OutBuffer body;
  WriteProblem(body, refusal.status, refusal.reason);
  BeginAnswer(refusal.status)
      << "Cache-Control: no-store\r\nContent-Type: application/problem+json\r\nContent-Length: "
      << body.size() << "\r\n\r\n"
      << (head_method ? std::string_view() : body.view());
  state_ = State::kClosing;
}

// --- Answers ------------------------------------------------------------------

/// A store may answer one request while another connection's is being put to it: that one's
/// answers before are sent first.
OutBuffer& HttpConnection::Out() {
  HttpConnection*& owner = listener_.reactor().out_owner();
  if (owner != nullptr && owner != this) owner->Flush();
  owner = this;
  return listener_.reactor().out();
}

OutBuffer& HttpConnection::BeginAnswer(int status) {
  OutBuffer& out = Out();
  listener_.answers().Add(status);
  last_ |= draining_;
  if (status == 200) [[likely]] {
    out << "HTTP/1.1 200 OK\r\nX-Content-Type-Options: nosniff\r\nDate: ";
  } else {
    out << "HTTP/1.1 " << status << ' ' << ReasonPhrase(status)
        << "\r\nX-Content-Type-Options: nosniff\r\nDate: ";
  }
  out << listener_.reactor().date().Now() << "\r\n";
  if (last_) {
    out << "Connection: close\r\n";
  } else if (exchange_ != nullptr && exchange_->head_.minor == 0) {
    out << "Connection: keep-alive\r\n";
  }
  return out;
}

void HttpConnection::EndAnswer(std::string_view content_type, std::string_view body) {
  OutBuffer& out = listener_.reactor().out();
  if (!content_type.empty()) out << "Content-Type: " << content_type << "\r\n";
  out << "Content-Length: " << body.size() << "\r\n\r\n";
  if (exchange_->head_.method != "HEAD") out << body;
  FinishExchange();
}

void HttpConnection::FinishExchange() {
  GiveExchange();
  parser_.Reset();
  if (state_ == State::kClosed) {  // The client has gone meanwhile.
    listener_.reactor().out_owner() = nullptr;
    listener_.reactor().out().Clear();
    return listener_.OnGone(*this);
  }
  // If the body was not awaited, all of the input is dropped.
  begin_ = std::min(end_, begin_ + request_bytes_);
  state_ = last_ ? State::kClosing : State::kReading;
  if (!advancing_) Advance();  // The answer was waited for.
}

void HttpConnection::Flush() {
  HttpConnection*& owner = listener_.reactor().out_owner();
  if (owner != this) return;
  owner = nullptr;
  OutBuffer& out = listener_.reactor().out();
  std::string_view rest = out.view();
  while (!rest.empty() && !sending()) {
    const ssize_t sent = Send(rest.data(), rest.size());
    if (sent >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      out.Clear();
      return Close();
    }
    break;
  }
  if (!rest.empty()) {
    if (!sending()) {
      DropPending();
      Arm(Deadlines::Kind::kWrite);
    }
    BufferBudget* const budget = listener_.options().budget;
    if (budget != nullptr && !budget->Take(rest.size(), BufferBudget::Use::kUnchecked)) {
      out.Clear();
      return Close();
    }
    pending_held_ += rest.size();
    pending_ += rest;
  }
  out.Clear();
}

void HttpConnection::SendPending() {
  while (sending()) {
    const ssize_t sent = Send(pending_.data() + sent_, pending_.size() - sent_);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      return Close();
    }
    sent_ += static_cast<std::size_t>(sent);
    progress_ += static_cast<std::size_t>(sent);
  }
  DropPending();
}

void HttpConnection::DropPending() noexcept {
  if (BufferBudget* const budget = listener_.options().budget) budget->Return(pending_held_);
  pending_held_ = 0;
  pending_ = {};
  sent_ = 0;
}

/// After all that could be done at once: what is waited for next, and for how long.
void HttpConnection::Settle() {
  using Kind = Deadlines::Kind;
  if (state_ == State::kClosed || sending()) return;
  switch (state_) {
    case State::kReading: {
      Kind kind = draining_ ? Kind::kLinger
                  : silent_ ? listener_.options().silent_deadline
                            : Kind::kIdle;
      if (exchange_ != nullptr) {
        kind = Kind::kBody;
      } else if (begin_ != end_) {
        kind = Kind::kHeader;
      } else {
        ShrinkIfIdle();
      }
      // What has begun behind an answered request has a deadline of its own.
      const bool next = active_ && (kind == Kind::kHeader || kind == Kind::kBody);
      if (kind != armed_ || next) Arm(kind);
      return;
    }
    case State::kClosing:
      begin_ = end_ = 0;
      ShrinkIfIdle();
      if (!linger_ && !draining_ && !readable_) return Close();
      if (tls_ != nullptr) tls_->Close();
      ShutdownAndDropInput(socket_.get());
      state_ = State::kLingering;
      if (readable_) listener_.reactor().Again(*this);
      return Arm(Kind::kLinger);
    case State::kLingering:
      if (progress_ > kMaxLinger) Close();
      return;
    default:
      return;
  }
}

// --- Ends ---------------------------------------------------------------------

void HttpConnection::OnDeadline(Deadlines::Kind kind) {
  using Kind = Deadlines::Kind;
  // The store has a deadline of its own.
  if (state_ == State::kHandling && !sending()) return Arm(kind);
  switch (kind) {
    case Kind::kIdle:
      if (!active_) return Close();
      return Arm(kind);
    case Kind::kHeader:
      if (silent_) return Close();
      Refuse({408, "request head did not arrive in time"});
      break;
    case Kind::kBody:
      if (progress_ >= listener_.options().min_progress) return Arm(kind);
      Refuse({408, "request body arrives too slowly"});
      break;
    case Kind::kWrite:
      if (progress_ >= listener_.options().min_progress) return Arm(kind);
      return Close();
    case Kind::kLinger:
      return Close();
  }
  Flush();
  Settle();
}

void HttpConnection::Drain() {
  draining_ = true;
  if (state_ == State::kReading && begin_ == end_ && exchange_ == nullptr && !sending()) {
    Arm(Deadlines::Kind::kLinger);
  }
}

}  // namespace tidegate::net
