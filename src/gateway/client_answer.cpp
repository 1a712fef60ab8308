// SPDX-License-Identifier: Apache-2.0
// What a client of the gateway is answered, in HTTP/1.1.
#include <array>
#include <charconv>
#include <utility>

#include "gateway/client_connection.hpp"
#include "gateway/fields.hpp"
#include "gateway/gateway.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

using net::OutBuffer;

OutBuffer& ClientConnection::BeginHead(int status, std::string_view reason) {
  last_ |= draining_;
  OutBuffer& out = channel_.out();
  out_mark_ = out.size();
  sent_mark_ = channel_.sent();
  if (status == 200 && reason == "OK") {
    out << "HTTP/1.1 200 OK\r\n";
  } else {
    out << "HTTP/1.1 " << status << ' ' << reason << "\r\n";
  }
  return out;
}

void ClientConnection::EndHead(AnswerBody body, std::uint64_t length) {
  OutBuffer& out = channel_.out();
  stream_chunks_ = body == AnswerBody::kStream && minor_ == 1;
  close_delimited_ = body == AnswerBody::kStream && minor_ == 0;
  // To HTTP/1.0 the end of such a body can only be told by closing.
  if (close_delimited_) last_ = true;
  // To say so may turn out to have been too much, if the body comes after all; never too little.
  if (!body_done_ && !WholeBody() && MuchToCome()) last_ = true;
  if (body == AnswerBody::kLength) out << "Content-Length: " << length << "\r\n";
  if (stream_chunks_) out << "Transfer-Encoding: chunked\r\n";
  if (last_) {
    out << "Connection: close\r\n\r\n";
  } else if (minor_ == 0) {
    out << "Connection: keep-alive\r\n\r\n";
  } else {
    out << "\r\n";
  }
}

OutBuffer* ClientConnection::BeginInterim(int status, std::string_view reason) {
  if (minor_ == 0) return nullptr;
  if (status == 100) expects_continue_ = false;
  OutBuffer& out = channel_.out();
  out << "HTTP/1.1 " << status << ' ' << reason << "\r\n";
  return &out;
}

void ClientConnection::EndInterim() { channel_.out() << "\r\n"; }

bool ClientConnection::Retract() noexcept {
  if (switched_ || channel_.sent() != sent_mark_ || !channel_.blocked()) return false;
  channel_.out().Truncate(out_mark_);
  stream_chunks_ = close_delimited_ = false;
  return true;
}

void ClientConnection::Switch() {
  if (std::exchange(head_there_, false)) channel_.Drop(head_bytes_);
  switched_ = true;
  last_ = true;
  body_done_ = false;
  chunked_ = false;
  stream_chunks_ = false;
  reader_.Begin(net::ResponseBody::kUntilClose, 0);
}

void ClientConnection::SendBody(std::string_view data) {
  if (head_method_) return;
  if (!stream_chunks_) {
    (void)channel_.Send(data);  // What is broken shows when it is flushed.
    return;
  }
  OutBuffer& out = channel_.out();
  std::array<char, 18> size{};
  const auto end = std::to_chars(size.data(), size.data() + 16, data.size(), 16).ptr;
  out << std::string_view(size.data(), static_cast<std::size_t>(end - size.data())) << "\r\n";
  (void)channel_.Send(data);
  channel_.out() << "\r\n";
}

void ClientConnection::SendEnd(std::span<const net::HttpField> trailers, const HeaderEdits& edits) {
  if (!stream_chunks_ || head_method_) return;
  OutBuffer& out = channel_.out();
  out << "0\r\n";
  WriteResponseTrailers(out, trailers, edits);
  out << "\r\n";
}

bool ClientConnection::Flush() { return channel_.Flush(); }

void ClientConnection::Finish(Ending ending) {
  passage_ = nullptr;
  if (state_ == State::kClosed) return;
  state_ = State::kHead;
  if (ending == Ending::kCut) {
    // Without the end that it promised: a client must see that this was not all.
    if (close_delimited_) channel_.Abort();
    return Close();
  }
  LeaveBody();
  if (last_) {
    state_ = State::kClosing;
  } else {
    active_ = true;
  }
  if (!advancing_) Advance();
}

/// An answer of its own to what is no request.
void ClientConnection::Refuse(const net::HttpRefusal& refusal) {
  net::HttpStats::Add(listener_.stats().refused);
  parser_.Reset();
  OutBuffer body;
  net::WriteProblem(body, refusal.status, refusal.reason);
  minor_ = 1;
  last_ = true;
  head_method_ = false;
  body_done_ = true;
  BeginHead(refusal.status, net::ReasonPhrase(refusal.status))
      << "Date: " << listener_.reactor().date().Now()
      << "\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
         "Content-Type: application/problem+json\r\n";
  EndHead(AnswerBody::kLength, body.size());
  SendBody(body.view());
  state_ = State::kClosing;
  listener_.gateway().NoteRefused(*this, refusal);
  if (!channel_.Flush()) return Close();
}

}  // namespace tidegate
