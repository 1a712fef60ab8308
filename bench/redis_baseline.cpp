// SPDX-License-Identifier: Apache-2.0
#include "redis_baseline.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <stdexcept>

#include "redis_script.hpp"

namespace tidegate::bench {
namespace {

using redis::Reply;

std::int64_t NumberOf(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Baseline::Baseline(redis_test::RedisServer& server, Way way,
                   const std::vector<std::string>& identities, const Quota& quota, int connections)
    : way_(way),
      identities_(identities),
      rate_(quota.limit() * 1'000'000 / quota.period().count()),
      capacity_(quota.capacity()),
      sha_(server.Text({"SCRIPT", "LOAD", kUsualScript})),
      rate_text_(std::to_string(rate_)),
      capacity_text_(std::to_string(capacity_)),
      ttl_text_(std::to_string((capacity_ + rate_ - 1) / rate_)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      connections_(static_cast<std::size_t>(connections)) {
  for (Connection& connection : connections_) Open(connection, server.port());
}

void Baseline::Open(Connection& connection, int port) {
  connection.fd = net::Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (connect(connection.fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    throw std::runtime_error("the baseline cannot connect to Redis");
  }
  const int on = 1;
  setsockopt(connection.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &connection;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.fd.get(), &event);
}

/// Returns a key that is as long as Tidegate's keys.
std::string_view Baseline::KeyOf(std::uint32_t key) {
  return key_.assign("bl:tb:per-key:{").append(identities_[key]).append("}");
}

void Baseline::Send(Connection& connection, std::initializer_list<std::string_view> arguments) {
  command_ = "*" + std::to_string(arguments.size()) + "\r\n";
  for (const std::string_view argument : arguments) {
    command_.append("$").append(std::to_string(argument.size())).append("\r\n");
    command_.append(argument).append("\r\n");
  }
  if (send(connection.fd.get(), command_.data(), command_.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(command_.size())) {
    throw std::runtime_error("cannot send the baseline's commands to Redis");
  }
}

void Baseline::Ask(Connection& connection, std::uint32_t key) {
  ++requests_;
  ++busy_;
  connection.key = key;
  if (way_ == Way::kScript) {
    connection.step = Step::kScript;
    Send(connection,
         {"EVALSHA", sha_, "1", KeyOf(key), rate_text_, capacity_text_, now_text_, "1"});
  } else {
    connection.step = Step::kRead;
    Send(connection, {"HMGET", KeyOf(key), "tokens", "last_refill"});
  }
}

void Baseline::OnReadable(Connection& connection) {
  std::array<char, 1024> bytes;
  const ssize_t got = recv(connection.fd.get(), bytes.data(), bytes.size(), 0);
  if (got <= 0) throw std::runtime_error("Redis closed a connection of the baseline");
  connection.reader.Feed({bytes.data(), static_cast<std::size_t>(got)});
  Reply reply;
  const auto progress = connection.reader.Next(reply);
  if (progress == redis::RespReader::Progress::kMore) return;
  if (progress == redis::RespReader::Progress::kGarbage || reply.is(Reply::Type::kError)) {
    throw std::runtime_error("Redis replied to the baseline: " + std::string(reply.text));
  }
  OnReply(connection, reply);
}

void Baseline::OnReply(Connection& connection, const Reply& reply) {
  switch (connection.step) {
    case Step::kScript:
      return OnDecided(connection, !reply.elements.empty() && reply.elements.front().integer == 1);
    case Step::kRead: return OnState(connection, reply);
    case Step::kWrite:
      connection.step = Step::kExpire;
      return Send(connection, {"EXPIRE", KeyOf(connection.key), ttl_text_});
    case Step::kExpire: return OnDecided(connection, connection.allowed);
    case Step::kIdle:
      throw std::runtime_error("Redis sent a reply without a command of the baseline");
  }
}

/// Does the computation of the script in the client.
void Baseline::OnState(Connection& connection, const Reply& reply) {
  std::int64_t tokens = capacity_;
  std::int64_t last_refill = now_;
  if (reply.elements.size() == 2 && reply.elements[0].is(Reply::Type::kText)) {
    tokens = NumberOf(reply.elements[0].text);
    last_refill = NumberOf(reply.elements[1].text);
  }
  tokens = std::min(capacity_, tokens + std::max<std::int64_t>(0, now_ - last_refill) * rate_);
  connection.allowed = tokens >= 1;
  if (connection.allowed) {
    --tokens;
    last_refill = now_;
  }
  connection.step = Step::kWrite;
  Send(connection, {"HMSET", KeyOf(connection.key), "tokens", std::to_string(tokens), "last_refill",
                    std::to_string(last_refill)});
}

void Baseline::OnDecided(Connection& connection, bool allowed) {
  ++outcome_.decisions;
  if (allowed) ++outcome_.allowed;
  connection.step = Step::kIdle;
  --busy_;
  if (asking_ && requests_ < most_) Ask(connection, draws_->Next());
}

Baseline::Outcome Baseline::Run(Draws& draws, double seconds, std::uint64_t most) {
  using Clock = std::chrono::steady_clock;
  outcome_ = {};
  draws_ = &draws;
  requests_ = 0;
  most_ = most;
  asking_ = true;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  now_ = std::time(nullptr);
  now_text_ = std::to_string(now_);
  for (Connection& connection : connections_) {
    if (requests_ < most_) Ask(connection, draws.Next());
  }
  std::array<epoll_event, 256> events;
  while (busy_ > 0) {
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), 5000);
    if (count <= 0) throw std::runtime_error("Redis does not reply to the baseline");
    now_ = std::time(nullptr);
    now_text_ = std::to_string(now_);
    for (int i = 0; i < count; ++i) {
      OnReadable(*static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr));
    }
    if (Clock::now() >= end) asking_ = false;
  }
  return outcome_;
}

}  // namespace tidegate::bench
