// SPDX-License-Identifier: Apache-2.0
#include "net/http_connection.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <utility>

#include "net/http_listener.hpp"

namespace tidegate::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// A body that is sent, or an answer that is taken, more slowly than this is cut off: bytes per deadline.
constexpr std::size_t kMinProgress = 1024;
/// What is read and dropped after a refusal, at most.
constexpr std::size_t kMaxLinger = 1u << 20;
/// Answers to pipelined requests are sent when so many bytes have come together.
constexpr std::size_t kFlushBytes = 64u << 10;

Peer PeerOf(const tcp::socket& socket) {
  Peer peer;
  error_code error;
  const tcp::endpoint endpoint = socket.remote_endpoint(error);
  if (error) return peer;
  const auto address = endpoint.address();
  peer.bytes = address.is_v6()
                   ? address.to_v6().to_bytes()
                   : asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()).to_bytes();
  peer.port = endpoint.port();
  return peer;
}

}  // namespace

HttpConnection::HttpConnection(HttpListener& listener, tcp::socket socket)
    : listener_(listener), socket_(std::move(socket)), peer_(PeerOf(socket_)), buffer_(own_.data()) {}

HttpConnection::~HttpConnection() { GiveExchange(); }

void HttpConnection::Start() {
  Arm(Deadlines::Kind::kIdle);
  if (listener_.draining_) draining_ = true;
  StartRead();
}

void HttpConnection::Arm(Deadlines::Kind kind) {
  armed_ = kind;
  progress_ = 0;
  listener_.reactor_.deadlines().Arm(*this, kind);
}

void HttpConnection::GiveExchange() noexcept {
  if (exchange_ != nullptr) listener_.reactor_.exchanges().Give(std::exchange(exchange_, nullptr));
}

void HttpConnection::Close() {
  if (state_ != State::kClosed) {
    const bool handling = state_ == State::kHandling;
    state_ = State::kClosed;
    listener_.reactor_.deadlines().Disarm(*this);
    error_code ignored;
    socket_.close(ignored);
    if (!handling) GiveExchange();  // Else its handler still has it.
  }
  DeleteIfDone();
}

bool HttpConnection::DeleteIfDone() {
  if (state_ != State::kClosed) return false;
  if (reading_ || writing_ || processing_ || exchange_ != nullptr) return true;
  HttpListener& listener = listener_;
  delete this;
  listener.OnGone();
  return true;
}

// --- Reading ------------------------------------------------------------------

void HttpConnection::StartRead() {
  if (reading_ || state_ == State::kClosed) return;
  if (state_ == State::kLingering) begin_ = end_ = 0;
  if (begin_ == end_ && exchange_ == nullptr) {
    begin_ = end_ = 0;
    if (large_) {  // Idle connections keep no large buffers.
      large_.reset();
      buffer_ = own_.data();
      capacity_ = kInlineBytes;
    }
  }
  if (end_ == capacity_) MakeRoom(1);
  reading_ = true;
  socket_.async_read_some(asio::buffer(buffer_ + end_, capacity_ - end_),
                          [this](const error_code& error, std::size_t bytes) { OnRead(error, bytes); });
}

void HttpConnection::OnRead(const error_code& error, std::size_t bytes) {
  reading_ = false;
  if (DeleteIfDone()) return;
  if (error) {
    // Nothing more comes; what is being sent may still arrive.
    if (writing_) {
      state_ = State::kClosing;
      return;
    }
    return Close();
  }
  progress_ += bytes;
  if (state_ == State::kLingering) {
    request_bytes_ += bytes;
    if (request_bytes_ > kMaxLinger) return Close();
    return StartRead();
  }
  end_ += bytes;
  Process();
}

/// Room for `bytes` more behind what is there, moved to the buffer's beginning. The head's
/// views are read anew if it was there already.
void HttpConnection::MakeRoom(std::size_t bytes) {
  const std::size_t held = end_ - begin_;
  const std::size_t needed = held + bytes;
  if (needed > capacity_) {
    const std::size_t capacity = std::max(needed, capacity_ * 2);
    std::unique_ptr<char[]> larger(new char[capacity]);
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
    (void)parser_.Parse(input(), listener_.options_.limits, exchange_->head_);
  }
}

// --- Requests -----------------------------------------------------------------

void HttpConnection::Process() {
  processing_ = true;
  while (state_ == State::kReading && !writing_ && Step()) {
    if (listener_.reactor_.out().size() >= kFlushBytes) Flush();
  }
  processing_ = false;
  Settle();
}

/// One request, if it is there. False: wait.
bool HttpConnection::Step() {
  if (exchange_ == nullptr) {
    if (begin_ == end_) return false;
    HttpExchangePool& pool = listener_.reactor_.exchanges();
    exchange_ = pool.Take();
    exchange_->connection_ = this;
    const Parsed parsed = parser_.Parse(input(), listener_.options_.limits, exchange_->head_);
    if (parsed != Parsed::kDone) {
      GiveExchange();
      if (parsed == Parsed::kRefused) Refuse(parser_.refusal());
      return false;
    }
    head_bytes_ = parser_.consumed();
  }
  switch (ReadBody()) {
    case Body::kMore:
      ContinueIfExpected();
      return false;
    case Body::kRefused:
      return false;
    case Body::kDone:
      break;
  }
  HttpStats::Add(listener_.stats_.requests);
  state_ = State::kHandling;
  active_ = true;
  last_ = draining_ || !exchange_->head_.keep_alive;
  listener_.handler_.Handle(*exchange_);
  return true;
}

HttpConnection::Body HttpConnection::ReadBody() {
  const HttpHead& head = exchange_->head_;
  if (head.body == HttpBody::kChunked) return ReadChunked();
  const std::size_t length = head.body == HttpBody::kLength ? head.content_length : 0;
  request_bytes_ = head_bytes_ + length;
  if (end_ - begin_ < request_bytes_) {
    if (capacity_ - begin_ < request_bytes_) MakeRoom(request_bytes_ - (end_ - begin_));
    return Body::kMore;
  }
  exchange_->body_ = {buffer_ + begin_ + head_bytes_, length};
  return Body::kDone;
}

HttpConnection::Body HttpConnection::ReadChunked() {
  char* const body = buffer_ + begin_ + head_bytes_;
  const std::size_t size = end_ - begin_ - head_bytes_;
  switch (chunks_.Decode({body, size}, listener_.options_.limits)) {
    case Parsed::kRefused:
      Refuse(chunks_.refusal());
      return Body::kRefused;
    case Parsed::kMore:
      // The framing that has been read makes room for what comes.
      std::memmove(body + chunks_.decoded(), body + chunks_.raw(), size - chunks_.raw());
      end_ -= chunks_.raw() - chunks_.decoded();
      chunks_.Compacted();
      return Body::kMore;
    case Parsed::kDone:
      break;
  }
  exchange_->body_ = {body, chunks_.decoded()};
  request_bytes_ = head_bytes_ + chunks_.raw();
  chunks_.Reset();
  return Body::kDone;
}

void HttpConnection::ContinueIfExpected() {
  if (continued_ || !exchange_->head_.expects_continue) return;
  continued_ = true;
  listener_.reactor_.out() << "HTTP/1.1 100 Continue\r\n\r\n";
}

void HttpConnection::Refuse(const HttpRefusal& refusal) {
  HttpStats::Add(listener_.stats_.refused);
  last_ = true;
  OutBuffer body;
  body << R"({"type":"about:blank","title":")" << ReasonPhrase(refusal.status) << R"(","status":)"
       << refusal.status << R"(,"detail":")";
  WriteJsonText(body, refusal.reason);
  body << "\"}\n";
  BeginAnswer(refusal.status) << "Content-Type: application/problem+json\r\nContent-Length: "
                              << body.size() << "\r\n\r\n"
                              << body.view();
  GiveExchange();
  state_ = State::kLingering;
  request_bytes_ = 0;
}

// --- Answers ------------------------------------------------------------------

OutBuffer& HttpConnection::BeginAnswer(int status) {
  OutBuffer& out = listener_.reactor_.out();
  if (status == 200) [[likely]] {
    out << "HTTP/1.1 200 OK\r\nDate: ";
  } else {
    out << "HTTP/1.1 " << status << ' ' << ReasonPhrase(status) << "\r\nDate: ";
  }
  out << listener_.reactor_.date().Now() << "\r\n";
  if (last_) {
    out << "Connection: close\r\n";
  } else if (exchange_ != nullptr && exchange_->head_.minor == 0) {
    out << "Connection: keep-alive\r\n";
  }
  return out;
}

void HttpConnection::EndAnswer(std::string_view content_type, std::string_view body) {
  OutBuffer& out = listener_.reactor_.out();
  if (!content_type.empty()) out << "Content-Type: " << content_type << "\r\n";
  out << "Content-Length: " << body.size() << "\r\n\r\n";
  if (exchange_->head_.method != "HEAD") out << body;
  FinishExchange();
}

void HttpConnection::FinishExchange() {
  GiveExchange();
  parser_.Reset();
  continued_ = false;
  if (state_ == State::kClosed) {  // The client has gone.
    listener_.reactor_.out().Clear();
    if (!processing_) DeleteIfDone();
    return;
  }
  begin_ += request_bytes_;
  state_ = last_ ? State::kClosing : State::kReading;
  if (!processing_) Process();
}

/// After all that could be done at once: sends, and waits for what comes next.
void HttpConnection::Settle() {
  Flush();
  if (DeleteIfDone() || writing_) return;
  switch (state_) {
    case State::kReading:
      ArmForReading();
      return StartRead();
    case State::kClosing:
      return Close();
    case State::kLingering: {
      error_code ignored;
      socket_.shutdown(tcp::socket::shutdown_send, ignored);
      Arm(Deadlines::Kind::kLinger);
      return StartRead();
    }
    default:
      return;
  }
}

void HttpConnection::ArmForReading() {
  using Kind = Deadlines::Kind;
  Kind kind = Kind::kIdle;
  if (exchange_ != nullptr) {
    kind = Kind::kBody;
  } else if (begin_ != end_) {
    kind = Kind::kHeader;
  } else if (draining_) {
    kind = Kind::kLinger;
  }
  if (kind != armed_ || !Deadlines::IsArmed(*this)) Arm(kind);
}

// --- Writing ------------------------------------------------------------------

void HttpConnection::Flush() {
  OutBuffer& out = listener_.reactor_.out();
  if (out.empty()) return;
  if (state_ == State::kClosed) return out.Clear();
  if (writing_) {
    queued_ += out.view();
    return out.Clear();
  }
  error_code error;
  const std::size_t sent = socket_.write_some(asio::buffer(out.view().data(), out.size()), error);
  if (error && error != asio::error::would_block) {
    out.Clear();
    return Close();
  }
  if (const std::size_t took = error ? 0 : sent; took < out.size()) {
    pending_.assign(out.view().substr(took));
    sent_ = 0;
    Arm(Deadlines::Kind::kWrite);
    StartWrite();
  }
  out.Clear();
}

void HttpConnection::StartWrite() {
  writing_ = true;
  socket_.async_write_some(
      asio::buffer(pending_.data() + sent_, pending_.size() - sent_),
      [this](const error_code& error, std::size_t bytes) { OnWrite(error, bytes); });
}

void HttpConnection::OnWrite(const error_code& error, std::size_t bytes) {
  writing_ = false;
  if (DeleteIfDone()) return;
  if (error) return Close();
  sent_ += bytes;
  progress_ += bytes;
  if (sent_ < pending_.size()) return StartWrite();
  pending_ = std::exchange(queued_, {});
  sent_ = 0;
  if (!pending_.empty()) return StartWrite();
  Process();
}

// --- Ends ---------------------------------------------------------------------

void HttpConnection::OnDeadline(Deadlines::Kind kind) {
  using Kind = Deadlines::Kind;
  // The store has a deadline of its own.
  if (state_ == State::kHandling && !writing_) return Arm(kind);
  switch (kind) {
    case Kind::kIdle:
      if (!std::exchange(active_, false)) return Close();
      return Arm(kind);
    case Kind::kHeader:
      Refuse({408, "the request's head did not arrive in time"});
      return Settle();
    case Kind::kBody:
      if (progress_ >= kMinProgress) return Arm(kind);
      Refuse({408, "the request's body arrives too slowly"});
      return Settle();
    case Kind::kWrite:
      if (progress_ >= kMinProgress) return Arm(kind);
      return Close();
    case Kind::kLinger:
      return Close();
  }
}

void HttpConnection::Drain() {
  draining_ = true;
  if (state_ == State::kReading && begin_ == end_ && exchange_ == nullptr && !writing_) {
    Arm(Deadlines::Kind::kLinger);
  }
}

}  // namespace tidegate::net
