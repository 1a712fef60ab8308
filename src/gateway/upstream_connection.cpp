// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream_connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/upstream_pool.hpp"

namespace tidegate {
namespace {

int ErrorOf(int socket) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

UpstreamConnection::UpstreamConnection(UpstreamPool& pool, std::shared_ptr<Member> member)
    : pool_(pool), member_(std::move(member)), channel_(pool.buffers()) {}

UpstreamConnection::~UpstreamConnection() = default;

bool UpstreamConnection::Connect(std::string& problem, bool& ours) {
  const auto* const address = reinterpret_cast<const sockaddr*>(&member_->address.storage);
  net::Descriptor socket(
      ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) {
    ours = true;
    problem = std::string("the system gives no socket: ") + std::strerror(errno);
    return false;
  }
  if (socket.get() >= pool_.max_descriptor()) {
    ours = true;
    problem =
        "the remaining file descriptors are reserved for admin, the store and files: raise "
        "LimitNOFILE";
    return false;
  }
  const int on = 1;
  (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const int fd = socket.get();
  channel_.Open(std::move(socket));
  if (::connect(fd, address, member_->address.size) != 0 && errno != EINPROGRESS) {
    ours = errno == EADDRNOTAVAIL;  // No port is left on this side.
    problem = std::strerror(errno);
    return false;
  }
  if (!pool_.reactor().Watch(fd, *this)) {
    ours = true;
    problem = "the system does not watch the socket";
    return false;
  }
  return true;  // Ready to be written to is what a connection is, even if there is one already.
}

void UpstreamConnection::OnReady(std::uint32_t events) {
  if (state_ == State::kClosed) return;
  channel_.OnEvents(events);
  switch (state_) {
    case State::kConnecting:
      if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) OnConnected();
      return;
    case State::kShaking:
      return Shake();
    case State::kIdle:
      // Its end, or an answer to nothing: either way it is of no use any more.
      if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) pool_.Discard(*this);
      return;
    case State::kUp:
      if (user_ != nullptr) user_->OnUpstreamReady();
      return;
    case State::kClosed:
      return;
  }
}

void UpstreamConnection::OnConnected() {
  if (const int error = ErrorOf(channel_.fd()); error != 0) return Fail(std::strerror(error));
  if (!member_->tls) {
    state_ = State::kUp;
    return user_->OnUpstreamUp();
  }
  if (!channel_.BeginTls(*pool_.upstream().tls(), pool_.upstream().ServerName(*member_))) {
    return Fail("OpenSSL gives no session");
  }
  state_ = State::kShaking;
  Shake();
}

void UpstreamConnection::Shake() {
  switch (channel_.tls()->Handshake()) {
    case net::TlsSession::Shake::kMore:
      return;
    case net::TlsSession::Shake::kFailed: {
      const std::string problem = channel_.tls()->problem();
      return Fail(problem);
    }
    case net::TlsSession::Shake::kDone:
      state_ = State::kUp;
      return user_->OnUpstreamUp();
  }
}

void UpstreamConnection::Fail(const std::string& problem) {
  User* const user = std::exchange(user_, nullptr);
  pool_.Discard(*this);
  if (user != nullptr) user->OnUpstreamFailed(problem);
}

void UpstreamConnection::OnDeadline(net::Deadlines::Kind) { pool_.Discard(*this); }

}  // namespace tidegate
