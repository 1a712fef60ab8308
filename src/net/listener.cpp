// SPDX-License-Identifier: Apache-2.0
#include "net/listener.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "net/welcome.hpp"

namespace tidegate::net {
namespace {

/// So many at once, then the connections have their turn.
constexpr int kMaxAccepts = 64;

enum class Share : bool { kNo, kYes };

/// A bound socket; without one, errno says why.
Descriptor Bind(const Endpoint& endpoint, Share share) {
  Descriptor socket(::socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket) return {};
  if (setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return {};
  if (share == Share::kYes &&
      setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) {
    return {};
  }
  if (bind(socket.get(), endpoint.address(), endpoint.size()) != 0) return {};
  return socket;
}

/// With the peer's address from the same call: a client that has reset the connection meanwhile has
/// none any more, but what it sent can still be read.
Descriptor Accept(int listening, sockaddr_storage& peer) {
  socklen_t size = sizeof peer;
  return Descriptor(
      accept4(listening, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

std::unexpected<Error> CannotListen(const Endpoint& endpoint, int error) {
  std::string message = "cannot listen on " + endpoint.Text() + ": " + std::strerror(error);
  if (error == EADDRINUSE) message += "; is another tidegate running?";
  if (error == EACCES) message += "; ports below 1024 need a privilege";
  return std::unexpected(Error{ErrorCode::kNetwork, std::move(message)});
}

}  // namespace

/// Only bound, which fails where somebody listens: a client that came between would be reset.
Result<void> CheckFree(const Endpoint& endpoint) {
  if (endpoint.port() == 0 || Bind(endpoint, Share::kNo)) return {};
  return CannotListen(endpoint, errno);
}

Result<Descriptor> Listen(const Endpoint& endpoint) {
  Descriptor socket = Bind(endpoint, Share::kYes);
  if (!socket || listen(socket.get(), SOMAXCONN) != 0) return CannotListen(endpoint, errno);
  return socket;
}

Listener::Listener(Reactor& reactor, Descriptor socket, const Options& options)
    : reactor_(reactor), socket_(std::move(socket)), options_(options) {}

Listener::~Listener() {
  // The loop has ended: nobody will finish what is still under way.
  connections_.clear_and_dispose([](Connection* connection) { delete connection; });
}

void Listener::Start() {
  if (!reactor_.Watch(socket_.get(), *this)) {
    throw std::runtime_error("the system does not watch a listening socket: " +
                             std::string(std::strerror(errno)));
  }
}

void Listener::OnReady(std::uint32_t) {
  for (int i = 0; socket_; ++i) {
    if (i == kMaxAccepts) return reactor_.Again(*this);
    sockaddr_storage peer{};
    Descriptor accepted = Accept(socket_.get(), peer);
    if (accepted) {
      Adopt(std::move(accepted), peer);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    // Out of descriptors or memory: the queue keeps the clients; a moment later there may be some.
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      reactor_.deadlines().Arm(*this, Deadlines::Kind::kLinger);
    }
    return;
  }
}

void Listener::OnDeadline(Deadlines::Kind) { OnReady(0); }

void Listener::Adopt(Descriptor socket, const sockaddr_storage& address) {
  // Whoever cannot be told from others is not served: he would share their limits, or have none.
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return;
  HttpStats::Add(stats_.accepted);
  const std::size_t everywhere = options_.open->fetch_add(1, std::memory_order_relaxed);
  if (everywhere >= options_.max_connections) {
    options_.open->fetch_sub(1, std::memory_order_relaxed);
    HttpStats::Add(stats_.shed);
    if (tls_ == nullptr) {
      const std::string_view text = shed_text();
      (void)send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
      (void)shutdown(socket.get(), SHUT_WR);
    }
    return;
  }
  const int on = 1;
  (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const Endpoint peer = Endpoint::Of(address);
  Accepted accepted{std::move(socket), {peer.Bytes(), peer.port()}, nullptr};
  Connection* const connection = options_.proxy_protocol || tls_ != nullptr
                                     ? new Welcome(*this, std::move(accepted))
                                     : NewConnection(std::move(accepted));
  connections_.push_back(*connection);
  ++open_;
  stats_.open.store(open_, std::memory_order_relaxed);
  connection->Start();
}

void Listener::OnGone(Connection& connection) {
  connection.unlink();
  reactor_.Bury(&connection);
  --open_;
  options_.open->fetch_sub(1, std::memory_order_relaxed);
  stats_.open.store(open_, std::memory_order_relaxed);
  if (draining_ && open_ == 0 && drained_) std::exchange(drained_, nullptr)();
}

void Listener::OnWelcomed(Connection& welcome, Accepted accepted) {
  welcome.unlink();
  reactor_.Bury(&welcome);
  Connection* const connection = NewConnection(std::move(accepted));
  connections_.push_back(*connection);
  connection->Start();
}

void Listener::CloseAll() {
  for (auto it = connections_.begin(); it != connections_.end();) (it++)->Close();
}

void Listener::Drain(std::function<void()> drained) {
  draining_ = true;
  drained_ = std::move(drained);
  // Clients in the queue believe that they are connected: take them before the socket goes.
  while (true) {
    sockaddr_storage peer{};
    Descriptor accepted = Accept(socket_.get(), peer);
    if (accepted) {
      Adopt(std::move(accepted), peer);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      break;
    }
  }
  socket_.Close();
  Deadlines::Disarm(*this);
  for (auto it = connections_.begin(); it != connections_.end();) (it++)->Drain();
  if (open_ == 0 && drained_) std::exchange(drained_, nullptr)();
}

}  // namespace tidegate::net
