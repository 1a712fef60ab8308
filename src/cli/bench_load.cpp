// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_load.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <system_error>

namespace tidegate::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kReopenAfter{100};
constexpr std::size_t kChunk = 64u << 10;

}  // namespace

struct BenchLoad::Connection {
  net::Descriptor socket;
  std::unique_ptr<BenchWire> wire;
  std::string out;
  std::deque<Clock::time_point> due;  ///< Of each question under way.
  Clock::time_point reopen_at;        ///< While it is closed.
  bool waits_to_write = false;
};

void BenchTally::Merge(const BenchTally& other) {
  allowed += other.allowed;
  denied += other.denied;
  errors += other.errors;
  for (const auto& [status, count] : other.statuses) statuses[status] += count;
  for (const auto& [decided_by, count] : other.sources) sources[decided_by] += count;
  latency.Merge(other.latency);
  if (mistake.empty()) mistake = other.mistake;
  if (trouble.empty()) trouble = other.trouble;
}

BenchLoad::BenchLoad(Options options, const std::atomic<bool>& stop)
    : options_(std::move(options)), stop_(stop), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  chunk_.resize(kChunk);
  for (int i = 0; i < options_.connections; ++i) {
    connections_.push_back(std::make_unique<Connection>());
    connections_.back()->wire = options_.make_wire();
  }
}

BenchLoad::~BenchLoad() {
  if (epoll_ >= 0) close(epoll_);
}

void BenchLoad::Open(Connection& connection, Clock::time_point now) {
  const Deadline deadline(options_.patience);
  auto socket = Dial(options_.server, options_.patience, deadline);
  if (!socket) {
    connection.reopen_at = now + kReopenAfter;
    ++tally_.errors;
    if (tally_.trouble.empty()) tally_.trouble = socket.error().message;
    return;
  }
  connection.socket = std::move(*socket);
  connection.waits_to_write = false;
  connection.wire->Reset();
  connection.out.clear();
  connection.wire->AddGreeting(connection.out);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.socket.get(), &event);
  if (options_.rate <= 0) Fill(connection);
}

void BenchLoad::Break(Connection& connection, const std::string& why) {
  if (!connection.due.empty() && tally_.trouble.empty()) tally_.trouble = why;
  tally_.errors += connection.due.size();
  under_way_ -= connection.due.size();
  connection.due.clear();
  connection.socket.Close();
  // At once, where a server ends connections in good order; a crowd of failures is spread.
  connection.reopen_at = Clock::now() + (why.empty() ? milliseconds{0} : kReopenAfter);
}

void BenchLoad::Ask(Connection& connection, Clock::time_point due) {
  connection.wire->AddQuestion(options_.identity(options_.draw.Next()), connection.out);
  connection.due.push_back(due);
  ++under_way_;
}

void BenchLoad::Fill(Connection& connection) {
  if (!sending_ || !connection.socket) return;
  const auto now = Clock::now();
  while (connection.due.size() < static_cast<std::size_t>(options_.pipeline)) Ask(connection, now);
  Flush(connection);
}

void BenchLoad::FillByRate(Clock::time_point now) {
  const auto interval =
      std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(1 / options_.rate));
  // Those that are due wait while all connections are busy: the time counts from when they were.
  for (std::size_t tried = 0; due_ <= now && tried < connections_.size();) {
    Connection& connection = *connections_[next_++ % connections_.size()];
    if (!connection.socket ||
        connection.due.size() >= static_cast<std::size_t>(options_.pipeline)) {
      ++tried;
      continue;
    }
    tried = 0;
    Ask(connection, due_);
    Flush(connection);
    due_ += interval;
  }
}

void BenchLoad::Flush(Connection& connection) {
  while (!connection.out.empty()) {
    const ssize_t sent =
        send(connection.socket.get(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      connection.out.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return Break(connection, std::generic_category().message(errno));
    }
  }
  const bool waits = !connection.out.empty();
  if (waits == connection.waits_to_write) return;
  connection.waits_to_write = waits;
  epoll_event event{.events = waits ? EPOLLIN | EPOLLOUT : EPOLLIN, .data = {.ptr = &connection}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.socket.get(), &event);
}

void BenchLoad::Note(const BenchAnswer& answer) {
  ++(answer.allowed ? tally_.allowed : tally_.denied);
  if (answer.status != 0) ++tally_.statuses[answer.status];
  const std::string_view decided_by = answer.decided_by.empty() ? "none" : answer.decided_by;
  const auto found = tally_.sources.find(decided_by);
  if (found != tally_.sources.end()) {
    ++found->second;
  } else if (tally_.sources.size() < 16) {  // Foreign text must not grow without end.
    tally_.sources.emplace(decided_by, 1);
  }
  answered_.store(tally_.decisions(), std::memory_order_relaxed);
}

void BenchLoad::OnReadable(Connection& connection) {
  const ssize_t got = recv(connection.socket.get(), chunk_.data(), chunk_.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return Break(connection, std::generic_category().message(errno));
  if (got == 0) {
    return Break(connection, connection.due.empty() ? "" : "the server closed a connection");
  }
  connection.wire->Feed({chunk_.data(), static_cast<std::size_t>(got)});
  const auto now = Clock::now();
  BenchAnswer answer;
  for (;;) {
    const auto progress = connection.wire->Next(answer);
    if (progress == BenchWire::Progress::kMore) break;
    if (progress == BenchWire::Progress::kAnswer && !answer.mistake.empty()) {
      tally_.mistake = answer.mistake;
      return;
    }
    if (progress == BenchWire::Progress::kGarbage || connection.due.empty()) {
      tally_.mistake = options_.server.Text() + " does not answer like a tidegate server";
      return;
    }
    tally_.latency.Add(now - connection.due.front());
    connection.due.pop_front();
    --under_way_;
    Note(answer);
    if (answer.last) return Break(connection, "");
  }
  if (options_.rate <= 0) Fill(connection);
}

void BenchLoad::Wait(Clock::time_point until) {
  // poll on the epoll descriptor, since that has the finer clock: a millisecond is a long time
  // here.
  const auto left = std::max(until - Clock::now(), Clock::duration{0});
  const timespec timeout{.tv_sec = 0,
                         .tv_nsec = std::min<std::int64_t>(
                             std::chrono::duration_cast<nanoseconds>(left).count(), 50'000'000)};
  pollfd polled{epoll_, POLLIN, 0};
  if (ppoll(&polled, 1, &timeout, nullptr) <= 0) return;
  std::array<epoll_event, 128> events;
  const int ready = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < ready && tally_.mistake.empty(); ++i) {
    auto& connection = *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
    const auto what = events[static_cast<std::size_t>(i)].events;
    if (connection.socket && (what & EPOLLOUT) != 0) Flush(connection);
    if (connection.socket && (what & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
      OnReadable(connection);
    }
  }
}

void BenchLoad::Reopen(Clock::time_point now) {
  for (const auto& connection : connections_) {
    if (stop_ || !tally_.mistake.empty()) return;
    if (!connection->socket && connection->reopen_at <= now) Open(*connection, now);
  }
}

void BenchLoad::Run(Clock::time_point end) {
  due_ = Clock::now();
  const auto going = [&] { return !stop_ && tally_.mistake.empty(); };
  for (auto now = due_; now < end && going(); now = Clock::now()) {
    Reopen(now);
    if (options_.rate > 0) FillByRate(now);
    const bool late = options_.rate > 0 && due_ <= Clock::now();
    Wait(options_.rate > 0 && !late ? std::min(end, due_) : end);
  }
  sending_ = false;
  const auto patience = Clock::now() + options_.patience.timeout;
  while (under_way_ > 0 && tally_.mistake.empty() && Clock::now() < patience) Wait(patience);
  if (under_way_ > 0 && tally_.mistake.empty()) {
    tally_.errors += under_way_;
    if (tally_.trouble.empty()) tally_.trouble = "no answer within the time-out";
  }
}

}  // namespace tidegate::cli
