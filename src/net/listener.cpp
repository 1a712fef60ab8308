// SPDX-License-Identifier: Apache-2.0
#include "net/listener.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <expected>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/hash.hpp"
#include "base/random.hpp"

namespace tidegate::net {

namespace {

/// The most connections accepted in a row before open connections get their turn.
constexpr int kMaxAccepts = 64;
/// Listener::OnSubsided is called only after a peak of at least this many connections.
constexpr std::size_t kManyConnections = 64;

enum class Share : bool { kNo, kYes };

/// Returns a bound socket. If that fails, returns an empty descriptor, and errno has the cause.
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

std::unexpected<Error> CannotListen(const Endpoint& endpoint, int error) {
  std::string message = "cannot listen on " + endpoint.Text() + ": " + std::strerror(error);
  if (error == EADDRINUSE) message += "; is another tidegate running?";
  if (error == EACCES) message += "; ports below 1024 need a privilege";
  return std::unexpected(Error{ErrorCode::kNetwork, std::move(message)});
}

/// The most bytes that are read and dropped after the last response.
constexpr std::size_t kMaxLinger = 1u << 20;
/// The most reads in a row before other connections get their turn.
constexpr int kMaxDropReads = 16;

}  // namespace

std::size_t AddressCounts::Hash::operator()(const Bytes& address) const noexcept {
  return tidegate::Hash({reinterpret_cast<const char*>(address.data()), address.size()}, seed);
}

AddressCounts::AddressCounts(std::size_t most, int ipv6_prefix)
    : most_(most), ipv6_prefix_(ipv6_prefix), counts_(0, Hash{RandomSeed()}) {}

AddressCounts::Bytes AddressCounts::KeyOf(const Bytes& address) const noexcept {
  const auto v6 = std::bit_cast<in6_addr>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return address;
  Bytes key{};
  const auto whole = static_cast<std::size_t>(ipv6_prefix_ / 8);
  std::copy_n(address.begin(), whole, key.begin());
  if (const int bits = ipv6_prefix_ % 8; bits != 0) {
    key[whole] = static_cast<unsigned char>(address[whole] & (0xffu << (8 - bits)));
  }
  return key;
}

bool AddressCounts::Add(const Bytes& address) {
  const Bytes key = KeyOf(address);
  const std::lock_guard lock(mutex_);
  std::size_t& count = counts_[key];
  if (count >= most_) return false;
  ++count;
  return true;
}

/// Binds without listening, because a client that connected meanwhile would be reset.
Result<void> CheckFree(const Endpoint& endpoint) {
  if (endpoint.port() == 0 || Bind(endpoint, Share::kNo)) return {};
  return CannotListen(endpoint, errno);
}

Result<Descriptor> Listen(const Endpoint& endpoint) {
  Descriptor socket = Bind(endpoint, Share::kYes);
  if (!socket || listen(socket.get(), SOMAXCONN) != 0) return CannotListen(endpoint, errno);
  return socket;
}

Listener::Listener(Reactor& reactor, Descriptor socket, const Options& options,
                   const Rejections& rejections)
    : reactor_(reactor), socket_(std::move(socket)), options_(options), rejections_(rejections) {}

Listener::~Listener() { DeleteConnections(); }

void Listener::Start() {
  if (!reactor_.Watch(socket_.get(), *this)) {
    throw std::runtime_error("cannot add a listening socket to epoll: " +
                             std::string(std::strerror(errno)));
  }
}

/// Reads the peer's address in the same call, because a socket has no such address after a reset.
bool Listener::AcceptOne() {
  while (true) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    Descriptor accepted(accept4(socket_.get(), reinterpret_cast<sockaddr*>(&peer), &size,
                                SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted) {
      Adopt(std::move(accepted), peer);
      return true;
    }
    if (errno != EINTR && errno != ECONNABORTED) return false;
  }
}

void Listener::OnReady(std::uint32_t) {
  for (int i = 0; socket_; ++i) {
    if (i == kMaxAccepts) return reactor_.Again(*this);
    if (AcceptOne()) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    // Out of descriptors or memory. The kernel's queue keeps the clients until the next attempt.
    CountShed(Shed::kDescriptors, nullptr);
    if (CloseOldest()) continue;
    reactor_.deadlines().Arm(*this, Deadlines::Kind::kLinger);
    return;
  }
}

std::optional<Shed> Listener::Admit(int socket, const Peer& peer, bool& counted) {
  if (socket >= options_.max_descriptor && !CloseOldest()) return Shed::kDescriptors;
  if (options_.per_address != nullptr && !(trusts_ && trusts_(peer))) {
    if (!options_.per_address->Add(peer.bytes)) return Shed::kAddress;
    counted = true;
  }
  do {
    if (options_.open->fetch_add(1, std::memory_order_relaxed) < options_.max_connections) {
      return std::nullopt;
    }
    options_.open->fetch_sub(1, std::memory_order_relaxed);
  } while (CloseOldest());
  if (counted) options_.per_address->Remove(peer.bytes);
  return Shed::kConnections;
}

void Listener::CountShed(Shed why, const Peer* peer) {
  HttpStats::Add(stats_.shed[static_cast<std::size_t>(why)]);
  if (on_shed_) on_shed_(why, peer);
}

bool Listener::CloseOldest() {
  if (options_.when_full != WhenFull::kReplaceOldest) return false;
  for (const Connection::Stage stage : {Connection::Stage::kIdle, Connection::Stage::kHead}) {
    for (Connection& connection : connections_) {
      if (connection.stage() != stage) continue;
      connection.Close();
      return true;
    }
  }
  return false;
}

void Listener::Adopt(Descriptor socket, const sockaddr_storage& address) {
  // Limits count clients by IP address, so a client without an IP address is not served.
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return;
  HttpStats::Add(stats_.accepted);
  const Endpoint endpoint = Endpoint::Of(address);
  const Peer peer{endpoint.Bytes(), endpoint.port()};
  bool counted = false;
  if (const auto why = Admit(socket.get(), peer, counted)) {
    CountShed(*why, &peer);
    if (tls_ == nullptr) {
      (void)send(socket.get(), rejections_.shed.data(), rejections_.shed.size(), MSG_NOSIGNAL);
      (void)shutdown(socket.get(), SHUT_WR);
    }
    return;
  }
  const int on = 1;
  (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  Accepted accepted{std::move(socket), peer, nullptr};
  Connection* const connection = options_.proxy_protocol || tls_ != nullptr
                                     ? NewHandshake(*this, std::move(accepted))
                                     : NewConnection(std::move(accepted));
  ++open_;
  peak_ = std::max(peak_, open_);
  stats_.open.store(open_, std::memory_order_relaxed);
  Add(*connection, counted, peer.bytes);
}

void Listener::Add(Connection& connection, bool counted, const AddressCounts::Bytes& address) {
  connection.counted_ = counted;
  connection.counted_address_ = address;
  connections_.push_back(connection);
  connection.Start();
}

void Listener::OnGone(Connection& connection) {
  connection.unlink();
  reactor_.Bury(&connection);
  --open_;
  options_.open->fetch_sub(1, std::memory_order_relaxed);
  if (connection.counted_) options_.per_address->Remove(connection.counted_address_);
  stats_.open.store(open_, std::memory_order_relaxed);
  if (peak_ >= kManyConnections && open_ < peak_ / 2) {
    peak_ = open_;
    if (on_subsided_) on_subsided_();
  }
  if (draining_ && open_ == 0 && drained_) std::exchange(drained_, nullptr)();
}

void Listener::OnHandshakeDone(Connection& handshake, Accepted accepted) {
  handshake.unlink();
  reactor_.Bury(&handshake);
  Add(*NewConnection(std::move(accepted)), handshake.counted_, handshake.counted_address_);
}

void Listener::Drain(std::function<void()> drained) {
  draining_ = true;
  drained_ = std::move(drained);
  // Clients in the queue see an open connection: accept them before the socket is closed.
  while (AcceptOne()) {
  }
  socket_.Close();
  Deadlines::Disarm(*this);
  for (auto it = connections_.begin(); it != connections_.end();) (it++)->Drain();
  if (open_ == 0 && drained_) std::exchange(drained_, nullptr)();
}

ServerConnection::ServerConnection(Listener& owner, Accepted accepted, BufferPool& buffers)
    : peer_(accepted.peer), channel_(buffers), draining_(owner.draining()), owner_(owner) {
  channel_.Open(std::move(accepted.socket), std::move(accepted.tls));
}

void ServerConnection::DropInput() {
  for (int reads = 0; reads < kMaxDropReads; ++reads) {
    channel_.Drop(channel_.input().size());
    (void)channel_.Rest();  // The input is empty, so Rest needs no budget.
    switch (channel_.Fill()) {
      case Channel::Got::kBytes:
        if (progress() > kMaxLinger) return Close();
        break;
      case Channel::Got::kNothing:
      case Channel::Got::kFull: return;
      case Channel::Got::kEnd:
      case Channel::Got::kBroken: return Close();
    }
  }
  owner_.reactor().Again(*this);
}

std::optional<HttpRefusal> ServerConnection::CheckDeadline(Kind kind) {
  switch (kind) {
    case Kind::kIdle: active_ ? Arm(kind) : Close(); return std::nullopt;
    case Kind::kHeader:
      if (!silent_) return HttpRefusal{408, "request head did not arrive in time"};
      break;
    case Kind::kBody:
      if (!fast_enough()) return HttpRefusal{408, "request body arrives too slowly"};
      [[fallthrough]];
    case Kind::kWrite:
      if (!fast_enough()) break;
      Arm(kind);
      return std::nullopt;
    case Kind::kLinger: break;
  }
  Close();
  return std::nullopt;
}

}  // namespace tidegate::net
