// SPDX-License-Identifier: Apache-2.0
#include "gateway/client_connection.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "gateway/gateway.hpp"
#include "gateway/proxied_exchange.hpp"

namespace tidegate {
namespace {

using net::Channel;
using net::Parsed;

/// The most requests of one connection in a row before other connections get their turn.
constexpr int kMaxRequests = 32;

}  // namespace

ClientConnection::ClientConnection(GatewayListener& listener, net::Accepted accepted)
    : ServerConnection(listener, std::move(accepted), listener.gateway().buffers()),
      listener_(listener) {}

bool ClientConnection::OnClosed() {
  state_ = State::kClosing;
  if (ProxiedExchange* const exchange = std::exchange(exchange_, nullptr)) {
    // If the connection's end is the body's end, only a reset shows that the body is incomplete.
    if (response_.body == Response::Body::kUntilClose) channel_.Abort();
    exchange->OnClientGone();  // Copies the parts of the head that it needs from our buffer.
  }
  return true;
}

void ClientConnection::OnReady(std::uint32_t events) {
  if (closed()) return;
  channel_.OnEvents(events);
  turn_ = 0;
  if (lingering()) return DropInput();
  if (state_ == State::kPassing) {
    if (channel_.hung_up()) LookForEnd();
    if (exchange_ != nullptr) exchange_->OnClientReady();
    return;
  }
  Advance();
}

/// A client that ends its half of the connection while it waits for a response is treated as gone,
/// as other proxies do: few clients half-close, and many vanish.
void ClientConnection::LookForEnd() {
  if (response_.body == Response::Body::kTunnel) return;  // In a tunnel a half-close has a meaning.
  if (channel_.reset()) return Close();
  // If another request follows in the buffer, the end of the stream after it cannot be seen.
  if (request_.body_done && channel_.input().size() > OwnBytes()) return;
  if (channel_.tls() != nullptr) {
    // Only reading finds close_notify, which is within TLS. If the body is incomplete, the exchange
    // continues to read and finds it.
    if (!request_.body_done) return;
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
  while (!closed()) {
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
  ArmNext();
}

bool ClientConnection::ReadHead() {
  Gateway& gateway = listener_.gateway();
  while (true) {
    if (!channel_.input().empty()) {
      exchange_ = gateway.TakeExchange();
      switch (parser_.Parse(channel_.input(), listener_.options().limits, exchange_->head())) {
        case Parsed::kDone:
          if (exchange_->head().unknown_expect &&
              gateway.pipeline().snapshot()->routes->gateway().unknown_expect ==
                  GatewaySpec::UnknownExpect::kReject) {
            return Refuse(net::kUnknownExpect);
          }
          Begin();
          // The client's end of stream may have arrived with the request, without another event.
          if (state_ == State::kPassing && channel_.hung_up()) LookForEnd();
          return true;
        case Parsed::kRefused: return Refuse(parser_.refusal());
        case Parsed::kMore: gateway.GiveExchange(std::exchange(exchange_, nullptr));
      }
    }
    switch (channel_.Fill()) {
      case Channel::Got::kBytes:
        if (std::exchange(silent_, false)) Arm(Kind::kIdle);
        break;
      case Channel::Got::kNothing: return false;
      case Channel::Got::kFull:
        if (channel_.Grow(listener_.options().limits.header_bytes)) break;
        return Refuse({431, "request head is longer than the limit"});
      case Channel::Got::kEnd:
      case Channel::Got::kBroken: Close(); return false;
    }
  }
}

void ClientConnection::Begin() {
  const net::HttpHead& head = exchange_->head();
  net::HttpStats::Add(listener_.stats().requests);
  ++turn_;
  active_ = true;
  state_ = State::kPassing;
  request_.head_bytes = parser_.consumed();
  parser_.Reset();
  received_before_ = channel_.received() - channel_.input().size();
  sent_before_ = channel_.sent();
  request_.head_there = true;
  request_.chunked = head.body == net::BodyFraming::kChunked;
  request_.length = head.body == net::BodyFraming::kLength ? head.content_length : 0;
  request_.body_done = !request_.chunked && request_.length == 0;
  request_.expects_continue = head.expects_continue;
  request_.is_head = head.method == "HEAD";
  request_.minor = head.minor;
  // Bytes that a client sends after CONNECT may be meant for a tunnel, which the gateway does not
  // open.
  response_.last = draining_ || !head.keep_alive || head.method == "CONNECT";
  response_.body = Response::Body::kLength;
  reader_.Begin(head.body, head.content_length);
  exchange_->Begin(*this);
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
      case Body::kWait: return false;
      case Body::kEnd:
        if (request_.chunked) channel_.Drop(reader_.eaten());
        state_ = State::kHead;
        return true;
      case Body::kRefused: Linger(); return false;
      case Body::kGone: Close(); return false;
    }
  }
}

void ClientConnection::ArmNext() {
  if (closed() || lingering()) return;
  if (state_ == State::kSkipping) return Await(Kind::kBody);
  if (state_ == State::kPassing) return;
  if (channel_.blocked()) return Await(Kind::kWrite);
  if (state_ == State::kClosing) {
    // Close at once only if no unread input is known: a close with unread input resets the
    // connection, and the client might lose the response.
    const bool over =
        request_.body_done && !draining_ && !channel_.readable() && channel_.input().empty();
    return over ? Close() : Linger();
  }
  // Rest() is not called if this connection only waits for its next turn, because its input may
  // contain complete requests.
  if (turn_ < kMaxRequests && !channel_.Rest()) {
    Refuse({503, net::kNoBuffer});
    return ArmNext();
  }
  AwaitRequest(channel_.input().empty() ? idle_deadline() : Kind::kHeader);
}

void ClientConnection::OnDeadline(Kind kind) {
  if (state_ == State::kPassing) return Arm(kind);  // The exchange has deadlines of its own.
  if (const auto refusal = CheckDeadline(kind)) {
    if (state_ != State::kHead) return Close();  // The response has been sent.
    Refuse(*refusal);
    ArmNext();
  }
}

}  // namespace tidegate
