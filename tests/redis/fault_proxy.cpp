// SPDX-License-Identifier: Apache-2.0
#include "redis/fault_proxy.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

#include "redis/record.hpp"
#include "redis/redis_server.hpp"
#include "support/ports.hpp"

namespace tidegate::redis_test {
namespace {

constexpr std::size_t kMostQueued = 4U << 20;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

void NoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Closes the socket with a TCP reset, as a host does that does not know the connection.
void Reset(int fd) {
  if (fd < 0) return;
  const linger at_once{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(fd);
}

}  // namespace

FaultProxy::FaultProxy(int server_port, std::uint32_t seed)
    : server_port_(server_port), random_(seed) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // A socket keeps a port that it bound by number even while it does not listen; it does not keep a
  // port that the system chose. SO_REUSEADDR lets it listen again while accepted connections are
  // still open.
  port_ = test::FreePort();
  const int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = Loopback(port_);
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, 1024) != 0) {
    throw std::runtime_error("the fault proxy cannot listen");
  }
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (const int fd : {listener_, wake_}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
  thread_ = std::thread([this] { Run(); });
}

FaultProxy::~FaultProxy() {
  SendOrder(Order::kStop);
  thread_.join();
  close(listener_);
  close(epoll_);
  close(wake_);
}

void FaultProxy::Set(const Fault& fault) { SendOrder(Order::kSet, fault); }
void FaultProxy::CutAll() { SendOrder(Order::kCutAll); }
void FaultProxy::Refuse() { SendOrder(Order::kRefuse); }
void FaultProxy::Accept() { SendOrder(Order::kAccept); }

std::vector<std::int64_t> FaultProxy::AcceptTimes() const {
  const std::lock_guard lock(mutex_);
  return accept_times_;
}

void FaultProxy::SendOrder(Order order, const Fault& fault) {
  std::uint64_t mine = 0;
  {
    const std::lock_guard lock(mutex_);
    orders_.emplace_back(order, fault);
    mine = ++orders_sent_;
  }
  const std::uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
  for (std::uint64_t done = orders_executed_; done < mine; done = orders_executed_)
    orders_executed_.wait(done);
}

void FaultProxy::Run() {
  std::array<epoll_event, 256> events{};
  while (!stop_) {
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), Timeout());
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == wake_) {
        std::uint64_t ignored = 0;
        (void)!read(wake_, &ignored, sizeof ignored);
      } else if (fd == listener_) {
        AcceptOne();
      } else {
        OnEvent(fd, events[static_cast<std::size_t>(i)].events);
      }
    }
    ExecuteOrders();
    if (fault_.kind == Fault::Kind::kStall) continue;
    std::vector<std::shared_ptr<Pair>> all;
    for (const auto& [fd, pair] : pairs_) {
      if (fd == pair->client.fd && !pair->client.out.empty()) all.push_back(pair);
    }
    for (const auto& pair : all) Tend(pair);
  }
  while (!pairs_.empty()) Drop(pairs_.begin()->second);
}

void FaultProxy::ExecuteOrders() {
  std::vector<std::pair<Order, Fault>> orders;
  {
    const std::lock_guard lock(mutex_);
    orders.swap(orders_);
  }
  for (const auto& [order, fault] : orders) {
    switch (order) {
      case Order::kSet: {
        fault_ = fault;
        std::vector<std::shared_ptr<Pair>> all;
        for (const auto& [fd, pair] : pairs_) all.push_back(pair);
        for (const auto& pair : all) {
          if (pair->tainted)
            Drop(pair);
          else
            Tend(pair);
        }
        break;
      }
      case Order::kCutAll:
        while (!pairs_.empty()) Drop(pairs_.begin()->second);
        break;
      case Order::kRefuse:
        // The socket stops listening but keeps its port, so that it can listen there again.
        shutdown(listener_, SHUT_RD);
        epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_, nullptr);
        break;
      case Order::kAccept: {
        listen(listener_, 1024);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = listener_;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event);
        break;
      }
      case Order::kStop: stop_ = true; break;
    }
    ++orders_executed_;
    orders_executed_.notify_all();
  }
}

void FaultProxy::AcceptOne() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  ++accepted_;
  {
    const std::lock_guard lock(mutex_);
    accept_times_.push_back(SteadyMicros());
  }
  NoDelay(client);
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  NoDelay(server);
  const sockaddr_in address = Loopback(server_port_);
  if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    Reset(client);
    close(server);
    return;
  }
  auto pair = std::make_shared<Pair>();
  pair->client.fd = client;
  pair->server.fd = server;
  pairs_[client] = pair;
  pairs_[server] = pair;
  ++open_;
  for (const int fd : {client, server}) {
    epoll_event event{};
    event.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
  Tend(pair);
}

void FaultProxy::OnEvent(int fd, std::uint32_t events) {
  const auto found = pairs_.find(fd);
  if (found == pairs_.end()) return;
  const std::shared_ptr<Pair> pair = found->second;
  const bool from_client = fd == pair->client.fd;
  Side& from = from_client ? pair->client : pair->server;
  Side& to = from_client ? pair->server : pair->client;
  if (fault_.kind == Fault::Kind::kStall) {
    // epoll reports errors and hangups even if they were not requested. The descriptor is removed
    // from epoll so that the loop does not spin; Watch() adds it again after the stall.
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
    return;
  }
  if ((events & EPOLLERR) != 0) return Drop(pair);
  if ((events & (EPOLLIN | EPOLLHUP)) != 0) Read(pair, from, to);
  if (pairs_.contains(fd)) Tend(pair);
}

void FaultProxy::Read(const std::shared_ptr<Pair>& pair, Side& from, Side& to) {
  std::array<char, 65536> buffer;  // NOLINT: filled by recv.
  const ssize_t got = recv(from.fd, buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return Drop(pair);
  if (got == 0) {
    from.ended = true;
    if (to.out.empty()) Drop(pair);
    return;
  }
  std::string bytes(buffer.data(), static_cast<std::size_t>(got));
  if (&from == &pair->client) {
    to.out.push_back({0, std::move(bytes)});
    return;
  }
  const bool cut = fault_.kind == Fault::Kind::kCutReplies && Hit();
  if (!cut) return OnReply(*pair, std::move(bytes));
  bytes.resize(std::min(fault_.bytes, bytes.size() - 1));
  // Sends the bytes directly: the reset below discards everything that is still queued in the
  // proxy.
  (void)!send(to.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  // Waits until the client has received these bytes, so that the reset meets it in the middle of a
  // reply.
  for (int i = 0, left = 1; i < 1000 && left > 0; ++i) {
    tcp_info info{};
    socklen_t size = sizeof info;
    getsockopt(to.fd, IPPROTO_TCP, TCP_INFO, &info, &size);
    left = static_cast<int>(info.tcpi_unacked);
  }
  Drop(pair);
}

void FaultProxy::OnReply(Pair& pair, std::string bytes) {
  std::int64_t due = 0;
  switch (fault_.kind) {
    case Fault::Kind::kDelayReplies:
      if (Hit()) due = SteadyMicros() + std::chrono::microseconds(fault_.delay).count();
      break;
    case Fault::Kind::kDropReplies:
      pair.dropping = pair.dropping || Hit();
      if (pair.dropping) {
        pair.tainted = true;
        return;
      }
      break;
    case Fault::Kind::kGarble:
      if (Hit()) {
        pair.tainted = true;
        bytes = Garbled(std::move(bytes));
      }
      break;
    default: break;
  }
  if (!pair.client.out.empty()) due = std::max(due, pair.client.out.back().due_us);
  pair.client.out.push_back({due, std::move(bytes)});
}

bool FaultProxy::Hit() {
  const bool hit = std::uniform_real_distribution<>(0, 1)(random_) < fault_.share;
  if (hit) ++hits_;
  return hit;
}

std::string FaultProxy::Garbled(std::string bytes) {
  static const std::array<std::string, 8> kJunk = {
      "+OK\r\n", ":1\r\n", "$-1\r\n",       "*3\r\n",
      "_\r\n",   "\r\n",   "-ERR junk\r\n", "HTTP/1.1 400 Bad\r\n"};
  const auto place = [&](std::size_t size) { return random_() % size; };
  switch (random_() % 5) {
    case 0:  // Flips one bit.
      bytes[place(bytes.size())] ^= static_cast<char>(1U << (random_() % 8));
      break;
    case 1:  // Overwrites four bytes.
      for (int i = 0; i < 4; ++i) bytes[place(bytes.size())] = static_cast<char>(random_());
      break;
    case 2:  // Inserts junk at the start or at a random place.
      bytes.insert(random_() % 2 == 0 ? 0 : place(bytes.size()), kJunk[place(kJunk.size())]);
      break;
    case 3: {  // Changes the first digit of a length, or the type if there is no digit.
      const std::size_t digit = bytes.find_first_of("0123456789");
      if (digit != std::string::npos)
        bytes[digit] = static_cast<char>('0' + random_() % 10);
      else
        bytes[0] = "+-:$*_%>~,#(!="[random_() % 14];
      break;
    }
    default:  // Keeps only a part.
      bytes.resize(place(bytes.size()) + 1);
      break;
  }
  return bytes;
}

void FaultProxy::Flush(Side& side, std::int64_t now_us) {
  while (!side.out.empty() && side.out.front().due_us <= now_us) {
    std::string& bytes = side.out.front().bytes;
    const ssize_t sent = send(side.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return;  // The socket is full, or it is closed and epoll reports that.
    bytes.erase(0, static_cast<std::size_t>(sent));
    if (!bytes.empty()) return;
    side.out.pop_front();
  }
}

/// Writes the pieces that are due and registers the events that are needed now.
void FaultProxy::Tend(const std::shared_ptr<Pair>& pair) {
  if (!pairs_.contains(pair->client.fd)) return;
  if (fault_.kind != Fault::Kind::kStall) {
    const std::int64_t now = SteadyMicros();
    Flush(pair->client, now);
    Flush(pair->server, now);
    const bool over = (pair->client.ended && pair->server.out.empty()) ||
                      (pair->server.ended && pair->client.out.empty());
    if (over) return Drop(pair);
  }
  Watch(pair->client);
  Watch(pair->server);
}

void FaultProxy::Watch(Side& side) {
  std::uint32_t wanted = 0;
  if (fault_.kind != Fault::Kind::kStall) {
    std::size_t queued = 0;
    for (const Piece& piece : side.out) queued += piece.bytes.size();
    if (!side.ended && queued < kMostQueued) wanted |= EPOLLIN;
    if (!side.out.empty() && side.out.front().due_us == 0) wanted |= EPOLLOUT;
  }
  epoll_event event{};
  event.events = wanted;
  event.data.fd = side.fd;
  // A stall may have removed the descriptor from epoll.
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, side.fd, &event) != 0) {
    epoll_ctl(epoll_, EPOLL_CTL_ADD, side.fd, &event);
  }
}

void FaultProxy::Drop(const std::shared_ptr<Pair>& pair) {
  // `pair` may refer to the map entry that is erased.
  const int client = pair->client.fd;
  const int server = pair->server.fd;
  if (pairs_.erase(client) == 0) return;
  pairs_.erase(server);
  --open_;
  Reset(client);
  Reset(server);
}

int FaultProxy::Timeout() const {
  if (fault_.kind == Fault::Kind::kStall) return -1;
  std::int64_t next = -1;
  for (const auto& [fd, pair] : pairs_) {
    if (pair->client.out.empty() || pair->client.out.front().due_us == 0) continue;
    const std::int64_t due = pair->client.out.front().due_us;
    if (next < 0 || due < next) next = due;
  }
  if (next < 0) return -1;
  return static_cast<int>(std::max<std::int64_t>(0, (next - SteadyMicros() + 999) / 1000));
}

}  // namespace tidegate::redis_test
