// SPDX-License-Identifier: Apache-2.0
#include "net/connection_handshake.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "net/proxy_protocol.hpp"

namespace tidegate::net {

ConnectionHandshake::ConnectionHandshake(Listener& listener, Accepted accepted)
    : listener_(listener),
      accepted_(std::move(accepted)),
      needs_header_(listener.options().proxy_protocol) {}

void ConnectionHandshake::Start() {
  const bool draining = listener_.draining();
  listener_.reactor().deadlines().Arm(
      *this, draining ? Deadlines::Kind::kLinger : Deadlines::Kind::kHeader);
  if (!listener_.reactor().Watch(accepted_.socket.get(), *this)) Close();
}

void ConnectionHandshake::Drain() {
  listener_.reactor().deadlines().Arm(*this, Deadlines::Kind::kLinger);
}

void ConnectionHandshake::Close() {
  if (std::exchange(state_, State::kClosed) == State::kClosed) return;
  Deadlines::Disarm(*this);
  accepted_.tls.reset();
  accepted_.socket.Close();
  listener_.OnGone(*this);
}

void ConnectionHandshake::OnDeadline(Deadlines::Kind) { (void)Refuse(); }

ConnectionHandshake::Step ConnectionHandshake::Refuse() {
  HttpStats::Add(listener_.stats().refused);
  Close();
  return Step::kOver;
}

ConnectionHandshake::Step ConnectionHandshake::Reject(Rejection rejection,
                                                      std::string_view problem) {
  if (listener_.on_rejected()) listener_.on_rejected()(accepted_.peer, rejection, problem);
  return Refuse();
}

void ConnectionHandshake::OnReady(std::uint32_t events) {
  if (state_ == State::kClosed) return;
  ended_ |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  if (needs_header_ && ReadProxyHeader() != Step::kDone) return;
  if (listener_.tls() != nullptr && PerformTls() != Step::kDone) return;
  state_ = State::kClosed;
  Deadlines::Disarm(*this);
  listener_.OnHandshakeDone(*this, std::move(accepted_));
}

/// Takes only the header from the socket: the bytes after it belong to TLS or to the frontend.
ConnectionHandshake::Step ConnectionHandshake::ReadProxyHeader() {
  if (!listener_.trusts() || !listener_.trusts()(accepted_.peer)) {
    return Reject(Rejection::kUntrustedProxy);
  }
  std::array<char, kMaxProxyHeader> bytes;
  const int socket = accepted_.socket.get();
  const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Step::kWait;
  if (got <= 0) return Refuse();
  const ProxyHeader header = ParseProxyHeader({bytes.data(), static_cast<std::size_t>(got)});
  if (header.verdict == ProxyHeader::Verdict::kMore) return ended_ ? Refuse() : Step::kWait;
  if (header.verdict == ProxyHeader::Verdict::kBad) {
    return Reject(Rejection::kProxyHeader, header.problem);
  }
  const auto size = static_cast<ssize_t>(header.size);
  if (::recv(socket, bytes.data(), header.size, 0) != size) return Refuse();
  needs_header_ = false;
  if (header.source) {
    accepted_.peer = *header.source;
  } else {
    accepted_.peer.relayed = true;
  }
  return Step::kDone;
}

ConnectionHandshake::Step ConnectionHandshake::PerformTls() {
  if (accepted_.tls == nullptr) {
    accepted_.tls = TlsServer::NewSession(listener_.tls(), accepted_.socket.get());
    if (accepted_.tls == nullptr) return Refuse();
  }
  switch (accepted_.tls->Handshake()) {
    case TlsSession::Shake::kMore:
      return Step::kWait;
    case TlsSession::Shake::kFailed:
      return RefuseTls();
    case TlsSession::Shake::kDone:
      break;
  }
  // A resumed session brings a certificate that was valid when the session began.
  if (!listener_.tls()->Accepts(*accepted_.tls)) {
    return Reject(Rejection::kCertificate, "the certificate has expired since the session began");
  }
  accepted_.peer.secure = true;
  accepted_.peer.verified = accepted_.tls->verified();
  if (accepted_.peer.verified) accepted_.peer.certificate = accepted_.tls->Certificate();
  return Step::kDone;
}

ConnectionHandshake::Step ConnectionHandshake::RefuseTls() {
  if (accepted_.tls->plain()) SendNeedsTls();
  switch (accepted_.tls->certificate_fault()) {
    case TlsSession::CertificateFault::kNone:
      break;
    case TlsSession::CertificateFault::kMissing:
      return Reject(Rejection::kMissingCertificate);
    case TlsSession::CertificateFault::kRefused:
      return Reject(Rejection::kCertificate, accepted_.tls->problem());
  }
  return Refuse();
}

void ConnectionHandshake::SendNeedsTls() {
  const std::string_view text = listener_.needs_tls_text();
  (void)::send(accepted_.socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  (void)::shutdown(accepted_.socket.get(), SHUT_WR);
  // Closing a socket with unread bytes resets the connection, and the text might be lost.
  std::array<char, kMaxProxyHeader> rest;
  for (int i = 0; i < 16; ++i) {
    if (::recv(accepted_.socket.get(), rest.data(), rest.size(), 0) <= 0) break;
  }
}

}  // namespace tidegate::net
