// SPDX-License-Identifier: Apache-2.0
#include "store/redis/link.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace tidegate::redis {
namespace {

/// A server that speaks TLS only hangs up at the first word without.
constexpr std::string_view kMaybeTls =
    " before the first reply (if this port requires TLS, write `rediss` for `redis` in store.url)";

std::string ErrorText(int error) { return std::strerror(error); }

net::SocketAddress UnixAddress(const std::string& path) {
  net::SocketAddress address;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  std::memcpy(&address.storage, &name, sizeof name);
  address.size = sizeof name;
  return address;
}

}  // namespace

Link::Link(net::Reactor& reactor, const Options& options, Listener& listener)
    : net::Timer(reactor.timers()),
      reactor_(reactor),
      options_(options),
      listener_(listener),
      resolver_(reactor),
      greeting_(options.greeting) {}

Link::~Link() { Close(); }

void Link::Close() noexcept {
  resolver_.Forget();
  Disarm();
  tls_.reset();
  fd_.Close();
  state_ = State::kClosed;
  reader_.Clear();
  out_.clear();
  sent_ = 0;
  ++generation_;
}

void Link::Fail(ErrorKind kind, const std::string& problem) {
  // What still waits in the system's buffers is not delivered after all: its callers hear that
  // it failed.
  const linger at_once{1, 0};
  if (fd_) (void)setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  Close();
  listener_.OnLinkDown(kind, problem);
}

void Link::OnTimer(net::Timer::Clock::time_point) {
  const std::string where =
      Shown() + " within " + std::to_string(options_.connect_timeout.count() / 1000) + " ms";
  if (state_ != State::kHandshake) return Fail(ErrorKind::kOther, "no connection to " + where);
  // A server without TLS waits for the end of a line that never comes.
  Fail(ErrorKind::kTls, "no TLS to " + where +
                            ": if this port does not support TLS, write `redis` for `rediss` in "
                            "store.url, or name the TLS port");
}

void Link::Open() {
  state_ = State::kResolving;
  answered_ = false;
  last_problem_.clear();
  ArmAt(net::Timer::Clock::now() + options_.connect_timeout);
  const Endpoint& endpoint = options_.endpoint;
  if (!endpoint.path.empty()) {
    addresses_ = {UnixAddress(endpoint.path)};
    next_address_ = 0;
    return ConnectNext();
  }
  resolver_.Resolve(endpoint.host, endpoint.port,
                    [this](std::vector<net::SocketAddress> addresses, const std::string& problem) {
                      if (addresses.empty()) return Fail(ErrorKind::kOther, problem);
                      addresses_ = std::move(addresses);
                      // One that does not answer takes all the time there is: the next attempt
                      // begins with the one behind it.
                      std::ranges::rotate(
                          addresses_, addresses_.begin() + static_cast<std::ptrdiff_t>(
                                                               attempts_++ % addresses_.size()));
                      next_address_ = 0;
                      ConnectNext();
                    });
}

void Link::ConnectNext() {
  while (next_address_ < addresses_.size()) {
    const net::SocketAddress& address = addresses_[next_address_++];
    const int family = address.storage.ss_family;
    fd_ = net::Descriptor(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd_ || !reactor_.Watch(fd_.get(), *this)) {
      last_problem_ = ErrorText(errno);
      continue;
    }
    if (family != AF_UNIX) {
      // The keep-alive finds out within ten seconds that a peer has vanished, even while nothing is
      // sent.
      constexpr std::array<std::array<int, 3>, 6> kOptions = {
          {{IPPROTO_TCP, TCP_NODELAY, 1},
           {SOL_SOCKET, SO_KEEPALIVE, 1},
           {IPPROTO_TCP, TCP_KEEPIDLE, 5},
           {IPPROTO_TCP, TCP_KEEPINTVL, 1},
           {IPPROTO_TCP, TCP_KEEPCNT, 3},
           {IPPROTO_TCP, TCP_USER_TIMEOUT, 5000}}};
      for (const auto& [level, name, value] : kOptions) {
        (void)setsockopt(fd_.get(), level, name, &value, sizeof value);
      }
    }
    state_ = State::kConnecting;
    const auto* const to = reinterpret_cast<const sockaddr*>(&address.storage);
    if (connect(fd_.get(), to, address.size) == 0) return OnConnected();
    if (errno == EINPROGRESS) return;
    last_problem_ = ErrorText(errno);
    fd_.Close();
  }
  Fail(ErrorKind::kOther, "no connection to " + Shown() + ": " + last_problem_);
}

void Link::OnConnected() {
  if (options_.tls == nullptr) return Greet();
  state_ = State::kHandshake;
  const std::string& name =
      options_.server_name.empty() ? options_.endpoint.host : options_.server_name;
  tls_ = options_.tls->NewSession(fd_.get(), name);
  if (tls_ == nullptr) {
    return Fail(ErrorKind::kTls,
                "no TLS to " + Shown() + ": OpenSSL does not accept the server name");
  }
  Shake();
}

void Link::Shake() {
  const auto progress = tls_->Handshake();
  if (progress == net::TlsSession::Shake::kMore) return;
  if (progress == net::TlsSession::Shake::kDone) return Greet();
  const std::string why = tls_->plain() ? "this port does not support TLS (write `redis` for "
                                          "`rediss` in store.url, or name the TLS port)"
                                        : tls_->problem();
  Fail(ErrorKind::kTls, "no TLS to " + Shown() + ": " + why);
}

void Link::OnReady(std::uint32_t events) {
  if (state_ == State::kConnecting) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
    int error = 0;
    socklen_t size = sizeof error;
    (void)getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      last_problem_ = ErrorText(error);
      fd_.Close();
      return ConnectNext();
    }
    sockaddr_storage peer{};
    size = sizeof peer;
    // An event of an earlier descriptor: this one is still on its way.
    if (getpeername(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) return;
    OnConnected();
  } else if (state_ == State::kHandshake) {
    Shake();
  }
  if (state_ != State::kGreeting && state_ != State::kUp) return;
  const std::uint64_t mine = generation_;
  if (sent_ < out_.size()) Flush();
  if (mine == generation_) Receive(events);
}

template <class Io>
ssize_t Link::Try(Io io) {
  while (true) {
    const ssize_t bytes = io();
    if (bytes >= 0) return bytes;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return net::kIoWait;
    if (errno == EINTR) continue;
    io_problem_ = ErrorText(errno);
    return net::kIoBroken;
  }
}

ssize_t Link::Read(char* data, std::size_t size) {
  if (tls_ != nullptr) return tls_->Read(data, size);
  return Try([&] { return ::recv(fd_.get(), data, size, 0); });
}

ssize_t Link::Write(std::string_view bytes) {
  if (tls_ != nullptr) return tls_->Write(bytes.data(), bytes.size());
  return Try([&] { return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); });
}

void Link::Broke() {
  // With TLS 1.3 a server tells after the handshake that it does not take our certificate.
  const bool refused = tls_ != nullptr && !tls_->problem().empty();
  std::string why = refused ? tls_->problem() : tls_ != nullptr ? "cut off" : io_problem_;
  if (!answered_ && tls_ == nullptr) why += kMaybeTls;
  Fail(refused ? ErrorKind::kTls : ErrorKind::kOther,
       "the connection to " + Shown() + " broke: " + why);
}

void Link::Flush() {
  while (sent_ < out_.size()) {
    const ssize_t written = Write(std::string_view(out_).substr(sent_));
    if (written == net::kIoWait) return;
    if (written < 0) return Broke();
    sent_ += static_cast<std::size_t>(written);
  }
  out_.clear();
  sent_ = 0;
}

void Link::Receive(std::uint32_t events) {
  std::array<char, 16 << 10> bytes;
  const std::uint64_t mine = generation_;
  while (true) {
    const ssize_t got = Read(bytes.data(), bytes.size());
    if (got == net::kIoWait) return;
    if (got < 0) return Broke();
    if (got == 0) {
      const bool hint = !answered_ && tls_ == nullptr;
      return Fail(ErrorKind::kOther,
                  Shown() + " closed the connection" + std::string(hint ? kMaybeTls : ""));
    }
    answered_ = true;
    reader_.Feed({bytes.data(), static_cast<std::size_t>(got)});
    Reply reply;
    while (true) {
      const RespReader::Progress progress = reader_.Next(reply);
      if (progress == RespReader::Progress::kMore) break;
      if (progress == RespReader::Progress::kGarbage) {
        return Fail(
            ErrorKind::kOther,
            Shown() + " sent bytes that are not the Redis protocol; the connection was dropped");
      }
      if (!Take(reply) || mine != generation_) return;
    }
    if (tls_ != nullptr) continue;  // Until OpenSSL has no more: it may keep some to itself.
    // Less than there was room for: that was all, but for an end that came with it.
    const bool ends = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (!ends && static_cast<std::size_t>(got) < bytes.size()) return;
  }
}

bool Link::Take(const Reply& reply) {
  if (state_ == State::kUp) {
    if (reply.is(Reply::Type::kPush)) {
      listener_.OnLinkPush(reply);
    } else {
      listener_.OnLinkReply(reply);
    }
    return true;
  }
  switch (greeting_.OnReply(reply)) {
    case Greeting::Progress::kMore: return true;
    case Greeting::Progress::kReady:
      state_ = State::kUp;
      attempts_ = 0;
      Disarm();
      listener_.OnLinkUp(greeting_);
      return true;
    case Greeting::Progress::kFailed: Fail(greeting_.kind(), greeting_.problem()); return false;
  }
  return false;
}

}  // namespace tidegate::redis
