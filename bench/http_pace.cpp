// SPDX-License-Identifier: Apache-2.0
#include "http_pace.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "http_load.hpp"

namespace tidegate::bench {

HttpPace::HttpPace(const std::vector<int>& ports, int connections_each,
                   std::function<const std::string&(std::uint64_t)> request)
    : request_(std::move(request)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  for (const int port : ports) {
    Server& server = servers_.emplace_back();
    for (int i = 0; i < connections_each; ++i) {
      Connection& connection = server.connections.emplace_back();
      connection.server = &server;
      Open(connection, port);
      server.free.push_back(&connection);
    }
  }
}

void HttpPace::Open(Connection& connection, int port) {
  connection.fd = net::Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (connect(connection.fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    throw std::runtime_error("the server under load does not accept connections");
  }
  const int on = 1;
  setsockopt(connection.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &connection;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.fd.get(), &event);
}

void HttpPace::Offer(Server& server, Clock::time_point intended) {
  if (server.free.empty()) {
    server.waiting.push_back(intended);
    return;
  }
  Connection& connection = *server.free.back();
  server.free.pop_back();
  Send(connection, intended);
}

void HttpPace::Send(Connection& connection, Clock::time_point intended) {
  const std::string& request = request_(sent_++);
  connection.intended = intended;
  if (send(connection.fd.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    throw std::runtime_error("cannot send a request to the server under load");
  }
}

void HttpPace::OnReadable(Connection& connection) {
  std::array<char, 16384> buffer;
  const ssize_t bytes = recv(connection.fd.get(), buffer.data(), buffer.size(), 0);
  if (bytes <= 0) throw std::runtime_error("the server under load closed a connection");
  connection.received.append(buffer.data(), static_cast<std::size_t>(bytes));
  if (AnswerBytes(connection.received) == 0) return;
  outcome_.micros.push_back(
      std::chrono::duration<double, std::micro>(Clock::now() - connection.intended).count());
  if (connection.received.starts_with("HTTP/1.1 200")) ++outcome_.ok;
  if (connection.received.find(R"("decided_by":"store")") != std::string::npos ||
      connection.received.find(R"("decided_by":"cache")") != std::string::npos) {
    ++outcome_.exact;
  }
  connection.received.clear();
  Server& server = *connection.server;
  if (server.waiting.empty()) {
    server.free.push_back(&connection);
    return;
  }
  const auto intended = server.waiting.front();
  server.waiting.pop_front();
  Send(connection, intended);
}

HttpPace::Outcome HttpPace::Run(double per_second, double seconds) {
  (void)prctl(PR_SET_TIMERSLACK, 1);  // The default of 50 us would count as latency of the servers.
  outcome_ = {};
  const auto total = static_cast<std::uint64_t>(per_second * seconds);
  outcome_.micros.reserve(total);
  const auto begun = Clock::now();
  const std::chrono::duration<double> interval(1 / per_second);
  const auto due = [&](std::uint64_t i) {
    return begun + std::chrono::duration_cast<Clock::duration>(interval * static_cast<double>(i));
  };
  std::array<epoll_event, 64> events;
  for (std::uint64_t offered = 0; outcome_.micros.size() < total;) {
    for (const auto now = Clock::now(); offered < total && due(offered) <= now; ++offered) {
      Offer(servers_[offered % servers_.size()], due(offered));
    }
    const std::chrono::nanoseconds wait =
        offered < total ? std::max(due(offered) - Clock::now(), Clock::duration{0})
                        : std::chrono::seconds{5};
    const timespec timeout{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    const int count = epoll_pwait2(epoll_.get(), events.data(), events.size(), &timeout, nullptr);
    if (count < 0 || (count == 0 && offered == total)) {
      throw std::runtime_error("the server under load does not respond");
    }
    for (int i = 0; i < count; ++i) {
      OnReadable(*static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr));
    }
  }
  outcome_.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  std::ranges::sort(outcome_.micros);
  return std::move(outcome_);
}

}  // namespace tidegate::bench
