// SPDX-License-Identifier: Apache-2.0
// An exchange reads the body of its request and writes its response with these functions.
#include <algorithm>
#include <utility>

#include "gateway/client_connection.hpp"
#include "gateway/fields.hpp"
#include "gateway/gateway.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

using net::Channel;
using net::OutBuffer;
using net::Parsed;

std::optional<std::string_view> ClientConnection::WholeBody() const {
  if (request_.body_done) return std::string_view{};
  if (request_.chunked || !request_.head_there) return std::nullopt;
  const std::string_view there = channel_.input().substr(request_.head_bytes);
  if (there.size() < request_.length) return std::nullopt;
  return there.substr(0, static_cast<std::size_t>(request_.length));
}

ClientConnection::Body ClientConnection::ReadBody() {
  if (std::exchange(request_.head_there, false)) channel_.Drop(request_.head_bytes);
  if (request_.body_done) return Body::kEnd;
  while (true) {
    const Parsed parsed = reader_.Read(channel_.raw());
    if (parsed == Parsed::kRefused) {
      response_.last = true;
      return Body::kRefused;
    }
    request_.body_done = parsed == Parsed::kDone;
    if (!reader_.data().empty()) return Body::kData;
    if (request_.body_done) return Body::kEnd;
    channel_.Drop(reader_.eaten());
    switch (channel_.Fill()) {
      case Channel::Got::kBytes: request_.expects_continue = false; break;
      case Channel::Got::kNothing:
        // At most a few bytes of a chunk's framing are left, which need no room in the budget.
        (void)channel_.Rest();
        return Body::kWait;
      case Channel::Got::kFull:
        if (channel_.Compact()) break;
        response_.last = true;
        return Body::kRefused;
      case Channel::Got::kEnd:
        if (!reader_.EndsAtClose()) return Body::kGone;
        request_.body_done = true;
        return Body::kEnd;
      case Channel::Got::kBroken: return Body::kGone;
    }
  }
}

void ClientConnection::LeaveBody() {
  if (const auto whole = WholeBody(); whole && request_.head_there) {
    channel_.Drop(request_.head_bytes + whole->size());
    request_.head_there = false;
    request_.body_done = true;
    return;
  }
  if (std::exchange(request_.head_there, false)) channel_.Drop(request_.head_bytes);
  if (request_.body_done) {
    // The trailers were in the buffer until now.
    if (request_.chunked) channel_.Drop(reader_.eaten());
    return;
  }
  if (response_.last) return;
  response_.last = MuchToCome();
  if (!response_.last) state_ = State::kSkipping;
}

/// Returns the bytes received for this request, without those of the next one in the buffer.
std::uint64_t ClientConnection::received() const noexcept {
  const std::uint64_t all = channel_.received() - received_before_;
  if (response_.body == Response::Body::kTunnel) return all;
  if (!request_.body_done && !(request_.head_there && WholeBody())) return all;
  return all - (channel_.input().size() - std::min(OwnBytes(), channel_.input().size()));
}

/// After a final response, a client with `Expect: 100-continue` may or may not send its body.
bool ClientConnection::MuchToCome() const noexcept {
  const std::uint64_t come = received() - std::min<std::uint64_t>(received(), request_.head_bytes);
  return request_.expects_continue || (!request_.chunked && request_.length > come + kMaxSkipped);
}

OutBuffer& ClientConnection::BeginHead(int status, std::string_view reason) {
  response_.last |= draining_;
  OutBuffer& out = channel_.out();
  response_.out_mark = out.size();
  response_.sent_mark = channel_.sent();
  if (status == 200 && reason == "OK") {
    out << "HTTP/1.1 200 OK\r\n";
  } else {
    out << "HTTP/1.1 " << status << ' ' << reason << "\r\n";
  }
  return out;
}

void ClientConnection::EndHead(AnswerBody body, std::uint64_t length) {
  OutBuffer& out = channel_.out();
  response_.body = body != AnswerBody::kStream ? Response::Body::kLength
                   : request_.minor == 1       ? Response::Body::kChunks
                                               : Response::Body::kUntilClose;
  // HTTP/1.0 has no chunks: only the end of the connection ends such a body.
  if (response_.body == Response::Body::kUntilClose) response_.last = true;
  // If the body arrives in time after all, the connection is closed without need, which does no
  // harm.
  if (!request_.body_done && !WholeBody() && MuchToCome()) response_.last = true;
  if (body == AnswerBody::kLength) out << "Content-Length: " << length << "\r\n";
  if (response_.body == Response::Body::kChunks) out << "Transfer-Encoding: chunked\r\n";
  if (response_.last) {
    out << "Connection: close\r\n\r\n";
  } else if (request_.minor == 0) {
    out << "Connection: keep-alive\r\n\r\n";
  } else {
    out << "\r\n";
  }
}

OutBuffer* ClientConnection::BeginInterim(int status, std::string_view reason) {
  if (request_.minor == 0) return nullptr;
  if (status == 100) request_.expects_continue = false;
  OutBuffer& out = channel_.out();
  out << "HTTP/1.1 " << status << ' ' << reason << "\r\n";
  return &out;
}

bool ClientConnection::Retract() noexcept {
  const bool some_left = channel_.sent() != response_.sent_mark || !channel_.blocked();
  if (response_.body == Response::Body::kTunnel || some_left) return false;
  channel_.out().Truncate(response_.out_mark);
  response_.body = Response::Body::kLength;
  return true;
}

void ClientConnection::Switch() {
  if (std::exchange(request_.head_there, false)) channel_.Drop(request_.head_bytes);
  response_.body = Response::Body::kTunnel;
  response_.last = true;
  request_.body_done = false;
  request_.chunked = false;
  reader_.Begin(net::BodyFraming::kUntilClose, 0);
}

void ClientConnection::SendBody(std::string_view data) {
  if (request_.is_head) return;
  if (response_.body != Response::Body::kChunks) {
    (void)channel_.Send(data);  // Flush reports a broken connection.
    return;
  }
  net::WriteChunkSize(channel_.out(), data.size());
  (void)channel_.Send(data);
  channel_.out() << "\r\n";
}

void ClientConnection::SendEnd(std::span<const net::HttpField> trailers, const HeaderEdits& edits) {
  if (response_.body != Response::Body::kChunks || request_.is_head) return;
  OutBuffer& out = channel_.out();
  out << "0\r\n";
  WriteTrailers(out, trailers, edits);
  out << "\r\n";
}

void ClientConnection::Finish(Ending ending) {
  exchange_ = nullptr;
  if (closed()) return;
  state_ = State::kHead;
  if (ending == Ending::kCut) {
    // The client must see that the response is not complete.
    if (response_.body == Response::Body::kUntilClose) channel_.Abort();
    return Close();
  }
  LeaveBody();
  if (response_.last) {
    state_ = State::kClosing;
  } else {
    active_ = true;
  }
  if (!advancing_) Advance();
}

bool ClientConnection::Refuse(const net::HttpRefusal& refusal) {
  Gateway& gateway = listener_.gateway();
  if (exchange_ != nullptr) gateway.GiveExchange(std::exchange(exchange_, nullptr));
  net::HttpStats::Add(listener_.stats().refused);
  net::WriteRefusal(channel_.out(), refusal);
  gateway.NoteRefused(*this, refusal);
  parser_.Reset();
  request_.body_done = true;
  state_ = State::kClosing;
  if (!channel_.Flush()) Close();
  return false;
}

}  // namespace tidegate
