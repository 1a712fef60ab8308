// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_load.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <system_error>

namespace tidegate::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kReopenAfter{100};
constexpr std::size_t kChunk = 64u << 10;

/// Return log(1 + x) / x and (e^x - 1) / x, also for x next to 0, as an exponent near 1 needs them.
double LogRatio(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }
double ExpRatio(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }

/// Returns the n-th identity: a name, or an address of 10.0.0.0/8, from 10.0.0.1.
std::string IdentityOf(std::uint64_t n, bool addresses) {
  if (!addresses) return "bench-" + std::to_string(n);
  const std::uint64_t host = (n + 1) & 0xFFFFFF;
  return "10." + std::to_string(host >> 16) + "." + std::to_string(host >> 8 & 255) + "." +
         std::to_string(host & 255);
}

}  // namespace

ZipfGenerator::ZipfGenerator(std::uint64_t count, double exponent, std::uint64_t seed)
    : count_(count), exponent_(exponent), random_(seed) {
  if (exponent_ <= 0) return;
  area_first_ = Area(1.5) - 1;
  area_last_ = Area(static_cast<double>(count_) + 0.5);
  shortcut_ = 2 - AreaInverse(Area(2.5) - Height(2));
}

double ZipfGenerator::Height(double x) const { return std::exp(-exponent_ * std::log(x)); }

double ZipfGenerator::Area(double x) const {
  const double log = std::log(x);
  return ExpRatio((1 - exponent_) * log) * log;
}

double ZipfGenerator::AreaInverse(double area) const {
  // Rounding may move the argument slightly below -1, where the logarithm ends.
  return std::exp(LogRatio(std::max(area * (1 - exponent_), -1.0)) * area);
}

std::uint64_t ZipfGenerator::Next() {
  if (exponent_ <= 0) return random_() % count_;
  std::uniform_real_distribution<double> share(0, 1);
  for (;;) {
    const double area = area_last_ + share(random_) * (area_first_ - area_last_);
    const double x = AreaInverse(area);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(count_));
    if (k - x <= shortcut_ || area >= Area(k + 0.5) - Height(k)) {
      return static_cast<std::uint64_t>(k) - 1;
    }
  }
}

std::size_t LatencyRecord::IndexOf(std::uint64_t ns) noexcept {
  constexpr std::uint64_t kParts = 1u << kBits;
  if (ns < kParts) return ns;
  // 2^power <= ns / 32 < 2^(power + 1): the highest bit gives the power, the next five the part.
  const auto power = static_cast<unsigned>(std::bit_width(ns)) - kBits - 1;
  const std::size_t index = ((power + 1) << kBits) + ((ns >> power) - kParts);
  return std::min(index, (static_cast<std::size_t>(kPowers + 1) << kBits) - 1);
}

std::uint64_t LatencyRecord::EndOf(std::size_t index) noexcept {
  constexpr std::uint64_t kParts = 1u << kBits;
  if (index < kParts) return index;
  const std::size_t power = (index >> kBits) - 1;
  return ((kParts + (index & (kParts - 1)) + 1) << power) - 1;
}

void LatencyRecord::Add(Duration duration) noexcept {
  const Duration kept = std::max(duration, Duration{0});
  ++counts_[IndexOf(static_cast<std::uint64_t>(kept.count()))];
  ++count_;
  max_ = std::max(max_, kept);
}

void LatencyRecord::Merge(const LatencyRecord& other) noexcept {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

LatencyRecord::Duration LatencyRecord::Quantile(double q) const noexcept {
  if (count_ == 0) return Duration{0};
  const auto wanted = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= wanted) return std::min(Duration{EndOf(i)}, max_);
  }
  return max_;
}

void BenchResult::Merge(const BenchResult& other) {
  allowed += other.allowed;
  denied += other.denied;
  errors += other.errors;
  for (const auto& [status, count] : other.statuses) statuses[status] += count;
  for (const auto& [decided_by, count] : other.sources) sources[decided_by] += count;
  latency.Merge(other.latency);
  if (fatal_error.empty()) fatal_error = other.fatal_error;
  if (first_error.empty()) first_error = other.first_error;
}

BenchLoad::BenchLoad(const BenchOptions& options, const AdminClient& client, int connections,
                     std::uint64_t seed, const std::atomic<bool>& stop)
    : options_(options),
      client_(client.http()),
      numbers_(static_cast<std::uint64_t>(options.identities), options.zipf, seed),
      pipeline_(options.resp.empty() ? 1 : static_cast<std::size_t>(options.pipeline)),
      rate_(options.rate * connections / options.connections),
      stop_(stop),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  chunk_.resize(kChunk);
  for (int i = 0; i < connections; ++i) {
    connections_.push_back(std::make_unique<Connection>());
    connections_.back()->wire = options.resp.empty()
                                    ? MakeHttpWire(client_.server, options.rule, client_.token)
                                    : MakeRespWire(options.rule, client_.token);
  }
}

void BenchLoad::AddErrors(std::size_t count, const std::string& why) {
  result_.errors += count;
  if (count > 0 && result_.first_error.empty()) result_.first_error = why;
}

void BenchLoad::Open(Connection& connection, Clock::time_point now) {
  auto socket = client_.Connect(Deadline(client_.timeout));
  if (!socket) {
    connection.reopen_at = now + kReopenAfter;
    return AddErrors(1, socket.error().message);
  }
  connection.socket = std::move(*socket);
  connection.waits_to_write = false;
  connection.wire->Reset();
  connection.out.clear();
  connection.wire->AddGreeting(connection.out);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.socket.get(), &event);
  if (rate_ <= 0) Fill(connection);
}

void BenchLoad::Close(Connection& connection, const std::string& why) {
  AddErrors(connection.due.size(), why);
  in_flight_ -= connection.due.size();
  connection.due.clear();
  connection.socket.Close();
  // Reopens at once after an orderly end; after a failure later, to spread the attempts in time.
  connection.reopen_at = Clock::now() + (why.empty() ? milliseconds{0} : kReopenAfter);
}

void BenchLoad::Send(Connection& connection, Clock::time_point due) {
  connection.wire->AddRequest(IdentityOf(numbers_.Next(), options_.addresses), connection.out);
  connection.due.push_back(due);
  ++in_flight_;
}

void BenchLoad::Fill(Connection& connection) {
  if (!sending_ || !connection.socket) return;
  const auto now = Clock::now();
  while (connection.due.size() < pipeline_) Send(connection, now);
  Flush(connection);
}

void BenchLoad::FillByRate(Clock::time_point now) {
  const auto interval =
      std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(1 / rate_));
  // Due requests wait while all connections are busy; their latency includes that.
  for (std::size_t tried = 0; due_ <= now && tried < connections_.size();) {
    Connection& connection = *connections_[next_++ % connections_.size()];
    if (!connection.socket || connection.due.size() >= pipeline_) {
      ++tried;
      continue;
    }
    tried = 0;
    Send(connection, due_);
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
      return Close(connection, std::generic_category().message(errno));
    }
  }
  const bool waits = !connection.out.empty();
  if (waits == connection.waits_to_write) return;
  connection.waits_to_write = waits;
  epoll_event event{.events = waits ? EPOLLIN | EPOLLOUT : EPOLLIN, .data = {.ptr = &connection}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.socket.get(), &event);
}

void BenchLoad::Count(const BenchResponse& response) {
  ++(response.allowed ? result_.allowed : result_.denied);
  if (response.status != 0) ++result_.statuses[response.status];
  const std::string_view decided_by = response.decided_by.empty() ? "none" : response.decided_by;
  const auto found = result_.sources.find(decided_by);
  if (found != result_.sources.end()) {
    ++found->second;
  } else if (result_.sources.size() < 16) {  // Foreign text must not grow without limit.
    result_.sources.emplace(decided_by, 1);
  }
  answered_.store(result_.decisions(), std::memory_order_relaxed);
}

void BenchLoad::OnReadable(Connection& connection) {
  const ssize_t got = recv(connection.socket.get(), chunk_.data(), chunk_.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return Close(connection, std::generic_category().message(errno));
  if (got == 0) {
    return Close(connection, connection.due.empty() ? "" : "the server closed a connection");
  }
  connection.wire->Feed({chunk_.data(), static_cast<std::size_t>(got)});
  const auto now = Clock::now();
  BenchResponse response;
  for (;;) {
    const auto progress = connection.wire->Next(response);
    if (progress == BenchWire::Progress::kMore) break;
    if (progress == BenchWire::Progress::kResponse && !response.fatal_error.empty()) {
      result_.fatal_error = response.fatal_error;
      return;
    }
    if (progress == BenchWire::Progress::kMalformed || connection.due.empty()) {
      result_.fatal_error = client_.server.Text() + " does not respond like a tidegate server";
      return;
    }
    result_.latency.Add(now - connection.due.front());
    connection.due.pop_front();
    --in_flight_;
    Count(response);
    if (response.last) return Close(connection, "");
  }
  if (rate_ <= 0) Fill(connection);
}

void BenchLoad::Wait(Clock::time_point until) {
  // The resolution of epoll_wait, one millisecond, is too coarse here.
  const auto left = std::max(until - Clock::now(), Clock::duration{0});
  const timespec timeout{.tv_sec = 0,
                         .tv_nsec = std::min<std::int64_t>(
                             std::chrono::duration_cast<nanoseconds>(left).count(), 50'000'000)};
  pollfd polled{epoll_.get(), POLLIN, 0};
  if (ppoll(&polled, 1, &timeout, nullptr) <= 0) return;
  std::array<epoll_event, 128> events;
  const int ready = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < ready && result_.fatal_error.empty(); ++i) {
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
    if (stop_ || !result_.fatal_error.empty()) return;
    if (!connection->socket && connection->reopen_at <= now) Open(*connection, now);
  }
}

void BenchLoad::Run(Clock::time_point end) {
  due_ = Clock::now();
  const auto going = [&] { return !stop_ && result_.fatal_error.empty(); };
  for (auto now = due_; now < end && going(); now = Clock::now()) {
    Reopen(now);
    if (rate_ > 0) FillByRate(now);
    const bool late = rate_ > 0 && due_ <= Clock::now();
    Wait(rate_ > 0 && !late ? std::min(end, due_) : end);
  }
  sending_ = false;
  const auto deadline = Clock::now() + client_.timeout;
  while (in_flight_ > 0 && result_.fatal_error.empty() && Clock::now() < deadline) Wait(deadline);
  if (!result_.fatal_error.empty()) return;
  AddErrors(in_flight_, "no answer within the timeout; wait longer with --timeout");
}

}  // namespace tidegate::cli
