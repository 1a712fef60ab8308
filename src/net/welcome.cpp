// SPDX-License-Identifier: Apache-2.0
#include "net/welcome.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "net/proxy_protocol.hpp"

namespace tidegate::net {

Welcome::Welcome(Listener& listener, Accepted accepted)
    : listener_(listener),
      accepted_(std::move(accepted)),
      header_(listener.options().proxy_protocol) {}

void Welcome::Start() {
  const bool draining = listener_.draining();
  listener_.reactor().deadlines().Arm(
      *this, draining ? Deadlines::Kind::kLinger : Deadlines::Kind::kHeader);
  if (!listener_.reactor().Watch(accepted_.socket.get(), *this)) Close();
}

void Welcome::Drain() { listener_.reactor().deadlines().Arm(*this, Deadlines::Kind::kLinger); }

void Welcome::Close() {
  if (std::exchange(state_, State::kClosed) == State::kClosed) return;
  Deadlines::Disarm(*this);
  accepted_.tls.reset();
  accepted_.socket.Close();
  listener_.OnGone(*this);
}

void Welcome::OnDeadline(Deadlines::Kind) { (void)Refuse(); }

Welcome::Step Welcome::Refuse() {
  HttpStats::Add(listener_.stats().refused);
  Close();
  return Step::kOver;
}

void Welcome::OnReady(std::uint32_t events) {
  if (state_ == State::kClosed) return;
  ended_ |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  if (header_ && ReadHeader() != Step::kDone) return;
  if (listener_.tls() != nullptr && ShakeHands() != Step::kDone) return;
  state_ = State::kClosed;
  Deadlines::Disarm(*this);
  listener_.OnWelcomed(*this, std::move(accepted_));
}

/// The header alone is taken from the socket: what follows is somebody else's.
Welcome::Step Welcome::ReadHeader() {
  if (!listener_.trusts() || !listener_.trusts()(accepted_.peer)) return Refuse();
  std::array<char, kMaxProxyHeader> bytes;
  const int socket = accepted_.socket.get();
  const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Step::kWait;
  if (got <= 0) return Refuse();
  const ProxyHeader header = ParseProxyHeader({bytes.data(), static_cast<std::size_t>(got)});
  if (header.verdict == ProxyHeader::Verdict::kMore) return ended_ ? Refuse() : Step::kWait;
  if (header.verdict == ProxyHeader::Verdict::kBad) return Refuse();
  const auto size = static_cast<ssize_t>(header.size);
  if (::recv(socket, bytes.data(), header.size, 0) != size) return Refuse();
  header_ = false;
  if (header.source) {
    accepted_.peer = *header.source;
  } else {
    accepted_.peer.relayed = true;
  }
  return Step::kDone;
}

Welcome::Step Welcome::ShakeHands() {
  if (accepted_.tls == nullptr) {
    accepted_.tls = TlsServer::NewSession(listener_.tls(), accepted_.socket.get());
    if (accepted_.tls == nullptr) return Refuse();
  }
  switch (accepted_.tls->Handshake()) {
    case TlsSession::Shake::kMore:
      return Step::kWait;
    case TlsSession::Shake::kFailed:
      if (accepted_.tls->plain()) {
        const std::string_view text = listener_.needs_tls_text();
        (void)::send(accepted_.socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
        (void)::shutdown(accepted_.socket.get(), SHUT_WR);
        // To close with bytes unread would reset the connection, and the text might be lost.
        std::array<char, kMaxProxyHeader> rest;
        for (int i = 0; i < 16; ++i) {
          if (::recv(accepted_.socket.get(), rest.data(), rest.size(), 0) <= 0) break;
        }
      }
      return Refuse();
    case TlsSession::Shake::kDone:
      break;
  }
  if (!listener_.tls()->Accepts(*accepted_.tls)) return Refuse();
  accepted_.peer.secure = true;
  accepted_.peer.verified = accepted_.tls->verified();
  return Step::kDone;
}

}  // namespace tidegate::net
