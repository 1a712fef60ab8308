// SPDX-License-Identifier: Apache-2.0
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "net/listener.hpp"
#include "net/proxy_protocol.hpp"
#include "net/timer.hpp"

namespace tidegate::net {
namespace {

/// Reads the PROXY protocol header and performs the TLS handshake, if the listener requires them,
/// within `limits.header_timeout`; then hands the socket to the frontend's connection.
class ConnectionHandshake final : public Connection, public Deadlines::Node {
 public:
  ConnectionHandshake(Listener& listener, Accepted accepted)
      : listener_(listener),
        accepted_(std::move(accepted)),
        needs_header_(listener.options().proxy_protocol) {}

  void Start() override {
    const bool draining = listener_.draining();
    listener_.reactor().deadlines().Arm(
        *this, draining ? Deadlines::Kind::kLinger : Deadlines::Kind::kHeader);
    if (!listener_.reactor().Watch(accepted_.socket.get(), *this)) Close();
  }
  void Drain() override { listener_.reactor().deadlines().Arm(*this, Deadlines::Kind::kLinger); }
  void Close() override {
    if (std::exchange(closed_, true)) return;
    Deadlines::Disarm(*this);
    accepted_.tls.reset();
    accepted_.socket.Close();
    listener_.OnGone(*this);
  }
  [[nodiscard]] Stage stage() const noexcept override {
    return closed_ ? Stage::kRequest : Stage::kIdle;
  }

 private:
  enum class Step : unsigned char { kDone, kWait, kOver };

  void OnReady(std::uint32_t events) override {
    if (closed_) return;
    ended_ |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (needs_header_ && ReadProxyHeader() != Step::kDone) return;
    if (listener_.tls() != nullptr && PerformTls() != Step::kDone) return;
    closed_ = true;
    Deadlines::Disarm(*this);
    listener_.OnHandshakeDone(*this, std::move(accepted_));
  }
  void OnDeadline(Deadlines::Kind) override { (void)Refuse(); }

  /// Counts the connection as refused and closes it.
  Step Refuse() {
    HttpStats::Add(listener_.stats().refused);
    Close();
    return Step::kOver;
  }
  /// Reports why the peer is rejected, and refuses the connection.
  [[nodiscard]] Step Reject(Rejection rejection, std::string_view problem = {}) {
    if (listener_.on_rejected()) listener_.on_rejected()(accepted_.peer, rejection, problem);
    return Refuse();
  }

  /// Takes only the header from the socket: the bytes after it belong to TLS or to the frontend.
  [[nodiscard]] Step ReadProxyHeader() {
    if (!listener_.trusts() || !listener_.trusts()(accepted_.peer)) {
      return Reject(Rejection::kUntrustedProxy);
    }
    std::array<char, kMaxProxyHeader> bytes;
    const int socket = accepted_.socket.get();
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Step::kWait;
    if (got <= 0) return Refuse();
    const ProxyHeader header = ParseProxyHeader({bytes.data(), static_cast<std::size_t>(got)});
    if (header.parsed == Parsed::kMore) return ended_ ? Refuse() : Step::kWait;
    if (header.parsed == Parsed::kRefused) return Reject(Rejection::kProxyHeader, header.problem);
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

  [[nodiscard]] Step PerformTls() {
    if (accepted_.tls == nullptr) {
      accepted_.tls = TlsServer::NewSession(listener_.tls(), accepted_.socket.get());
      if (accepted_.tls == nullptr) return Refuse();
    }
    switch (accepted_.tls->Handshake()) {
      case TlsSession::Shake::kMore: return Step::kWait;
      case TlsSession::Shake::kFailed: return RefuseTls();
      case TlsSession::Shake::kDone: break;
    }
    // A resumed session has the certificate of its first handshake, which may have expired.
    if (!listener_.tls()->Accepts(*accepted_.tls)) {
      return Reject(Rejection::kCertificate, "the certificate has expired since the session began");
    }
    accepted_.peer.secure = true;
    accepted_.peer.verified = accepted_.tls->verified();
    if (accepted_.peer.verified) accepted_.peer.certificate = accepted_.tls->Certificate();
    return Step::kDone;
  }

  /// Refuses the connection, and reports the rejection if the client's certificate is the cause.
  [[nodiscard]] Step RefuseTls() {
    using Fault = TlsSession::CertificateFault;
    if (accepted_.tls->plain()) SendNeedsTls();
    const Fault fault = accepted_.tls->certificate_fault();
    if (fault == Fault::kMissing) return Reject(Rejection::kMissingCertificate);
    if (fault == Fault::kNone) return Refuse();
    return Reject(Rejection::kCertificate, accepted_.tls->problem());
  }

  /// Sends an error, in the listener's protocol, to a client that does not use TLS.
  void SendNeedsTls() {
    const int socket = accepted_.socket.get();
    const std::string_view text = listener_.rejections().needs_tls;
    (void)::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    (void)::shutdown(socket, SHUT_WR);
    // Closing a socket with unread bytes resets the connection, and the text might be lost.
    std::array<char, kMaxProxyHeader> rest;
    for (int i = 0; i < 16 && ::recv(socket, rest.data(), rest.size(), 0) > 0; ++i) {
    }
  }

  Listener& listener_;
  Accepted accepted_;
  bool closed_ = false;
  bool needs_header_;   ///< The PROXY protocol header has not been read yet.
  bool ended_ = false;  ///< The peer has ended its half: no bytes follow those in the socket.
};

}  // namespace

Connection* NewHandshake(Listener& listener, Accepted accepted) {
  return new ConnectionHandshake(listener, std::move(accepted));
}

}  // namespace tidegate::net
