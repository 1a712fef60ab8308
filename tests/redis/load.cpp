// SPDX-License-Identifier: Apache-2.0
#include "redis/load.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <queue>
#include <random>

#include "support/timing.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kReconnectUs = 5000;
constexpr std::int64_t kDrainUs = 5'000'000;

DecidedBy SourceOf(std::string_view text) {
  constexpr std::string_view kMember = "\"decided_by\":\"";
  const std::size_t at = text.find(kMember);
  if (at == std::string_view::npos || at + kMember.size() + 1 >= text.size())
    return DecidedBy::kNone;
  // The first two letters distinguish all values: `cache` and `closed` share the first one.
  switch (text[at + kMember.size()]) {
    case 's': return DecidedBy::kStore;
    case 'l': return DecidedBy::kLocal;
    case 'o': return DecidedBy::kOpen;
    case 'c': return text[at + kMember.size() + 1] == 'a' ? DecidedBy::kCache : DecidedBy::kClosed;
    default: return DecidedBy::kNone;
  }
}

int ConnectTo(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  // A connection over loopback succeeds or is refused at once.
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

struct Load::Connection {
  int fd = -1;
  int port = 0;
  bool waiting = false;           ///< A request is in flight.
  bool planned = false;           ///< The connection is in the queue `due_`.
  bool has_load_request = false;  ///< `load_request` is chosen but not yet sent.
  std::int64_t last_due_us = 0;
  Record record;
  Record last;
  bool has_last = false;
  LoadRequest load_request;
  std::string received;
  std::string request;
};

class Load::Loop {
 public:
  Loop(Load& load, const Options& options, Next next)
      : load_(load), options_(options), next_(std::move(next)) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = kTimer;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event);
    const std::int64_t now = SteadyMicros();
    for (std::size_t node = 0; node < options_.ports.size(); ++node) {
      for (int i = 0; i < options_.connections; ++i) {
        Connection& connection = connections_.emplace_back();
        connection.port = options_.ports[node];
        connection.record.connection = static_cast<std::uint32_t>(connections_.size() - 1);
        connection.record.node = static_cast<std::uint8_t>(node);
      }
    }
    if (options_.rate > 0) {
      spacing_us_ = 1e6 * static_cast<double>(connections_.size()) / options_.rate;
    }
    for (Connection& connection : connections_) {
      connection.last_due_us = now + static_cast<std::int64_t>(Uniform() * spacing_us_);
      Plan(connection, connection.last_due_us);
    }
  }
  ~Loop() {
    for (const Connection& connection : connections_) {
      if (connection.fd >= 0) close(connection.fd);
    }
    close(timer_);
    close(epoll_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void Run() {
    std::array<epoll_event, 512> events{};
    std::int64_t drain_until = 0;
    while (true) {
      if (ending_ || load_.stop_ || load_.records_.size() + waiting_ >= options_.most) {
        if (!ending_) drain_until = SteadyMicros() + kDrainUs;
        ending_ = true;
        if (waiting_ == 0 || SteadyMicros() > drain_until) break;
      }
      Arm();
      const int count =
          epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), ending_ ? 5 : 20);
      for (int i = 0; i < count; ++i) {
        const std::uint32_t who = events[static_cast<std::size_t>(i)].data.u32;
        if (who == kTimer) {
          std::uint64_t ignored = 0;
          (void)!read(timer_, &ignored, sizeof ignored);
        } else {
          Receive(connections_[who]);
        }
      }
      SendDue();
    }
    for (Connection& connection : connections_) {
      if (connection.waiting) Lose(connection);
    }
  }

 private:
  static constexpr std::uint32_t kTimer = ~0U;
  using Due = std::pair<std::int64_t, std::uint32_t>;

  double Uniform() { return std::uniform_real_distribution<>(0, 1)(random_); }

  void Plan(Connection& connection, std::int64_t due_us) {
    if (connection.planned) return;
    connection.planned = true;
    due_.emplace(due_us, connection.record.connection);
  }

  void Arm() {
    const std::int64_t next = due_.empty() || ending_ ? 0 : due_.top().first;
    if (next == armed_) return;
    armed_ = next;
    itimerspec when{};
    when.it_value.tv_sec = next / 1'000'000;
    when.it_value.tv_nsec = next % 1'000'000 * 1000 + (next == 0 ? 0 : 1);
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
  }

  void SendDue() {
    while (!ending_ && !due_.empty() && due_.top().first <= SteadyMicros()) {
      Connection& connection = connections_[due_.top().second];
      due_.pop();
      connection.planned = false;
      if (load_.records_.size() + waiting_ >= options_.most) return;
      if (!connection.waiting) SendNext(connection);
    }
  }

  /// Chooses the next request, and sends it unless it must wait first.
  void SendNext(Connection& connection) {
    if (!connection.has_load_request) {
      connection.load_request.wait = 0us;
      next_(connection.record.connection, connection.has_last ? &connection.last : nullptr,
            connection.load_request);
      connection.has_load_request = true;
      if (connection.load_request.wait > 0us) {
        return Plan(connection, SteadyMicros() + connection.load_request.wait.count());
      }
    }
    Send(connection);
  }

  void Send(Connection& connection) {
    if (connection.fd < 0) {
      connection.fd = ConnectTo(connection.port);
      if (connection.fd < 0) return Plan(connection, SteadyMicros() + kReconnectUs);
      connection.received.clear();
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u32 = connection.record.connection;
      epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event);
    }
    const LoadRequest& load_request = connection.load_request;
    std::string& request = connection.request;
    std::array<char, 24> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), load_request.body.size());
    request.assign("POST ").append(load_request.path);
    request.append(
        " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ");
    request.append(digits.data(), end.ptr).append("\r\n\r\n").append(load_request.body);
    connection.record.sent_us = SteadyMicros();
    const ssize_t sent = send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(request.size())) {
      // There was no connection, so the request was not sent and is not lost.
      Close(connection);
      return Plan(connection, SteadyMicros() + kReconnectUs);
    }
    connection.has_load_request = false;
    connection.waiting = true;
    ++waiting_;
    ++load_.sent_;
    connection.record.key = load_request.key;
    connection.record.cost = load_request.cost;
    connection.record.op = load_request.op;
  }

  void Receive(Connection& connection) {
    std::array<char, 16384> buffer;  // NOLINT: filled by recv.
    const ssize_t got = recv(connection.fd, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      Close(connection);
      if (connection.waiting) Lose(connection);
      return Plan(connection, SteadyMicros() + kReconnectUs);
    }
    std::string_view text(buffer.data(), static_cast<std::size_t>(got));
    if (!connection.received.empty()) {
      connection.received.append(text);
      text = connection.received;
    }
    const std::size_t length = LengthOf(text);
    if (length == 0 || length > text.size()) {
      if (connection.received.empty()) connection.received.assign(text);
      return;
    }
    if (!connection.waiting || length < text.size()) ++load_.unexpected_;
    if (connection.waiting) RecordResponse(connection, text);
    connection.received.clear();
  }

  /// Returns the length of the whole response; 0 while its head is incomplete.
  static std::size_t LengthOf(std::string_view text) {
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string_view::npos) return 0;
    constexpr std::string_view kField = "Content-Length: ";
    const std::size_t at = text.substr(0, end).rfind(kField);
    std::size_t body = 0;
    if (at != std::string_view::npos) {
      std::from_chars(text.data() + at + kField.size(), text.data() + end, body);
    }
    return end + 4 + body;
  }

  void RecordResponse(Connection& connection, std::string_view text) {
    const std::int64_t now = SteadyMicros();
    Record& record = connection.record;
    record.took_us = static_cast<std::uint32_t>(now - record.sent_us);
    record.status = 0;
    std::from_chars(text.data() + 9, text.data() + 12, record.status);
    record.decided_by = SourceOf(text);
    Keep(connection);
    ++load_.answered_;
    ++load_.by_source_[static_cast<std::size_t>(record.decided_by)];
    if (record.decided_by == DecidedBy::kStore) {
      load_.last_store_us_[record.node] = record.sent_us;
      if (record.key < kWatchedKeys) load_.key_store_us_[record.node][record.key] = record.sent_us;
    }
    if (options_.rate > 0) {
      // Spreads requests evenly and never sends a burst to make up for lost time.
      connection.last_due_us = std::max(
          connection.last_due_us + static_cast<std::int64_t>(spacing_us_ * (0.5 + Uniform())), now);
      Plan(connection, connection.last_due_us);
    } else if (!ending_ && load_.records_.size() + waiting_ < options_.most) {
      SendNext(connection);
    }
  }

  void Lose(Connection& connection) {
    connection.record.took_us =
        static_cast<std::uint32_t>(SteadyMicros() - connection.record.sent_us);
    connection.record.status = 0;
    connection.record.decided_by = DecidedBy::kNone;
    Keep(connection);
    ++load_.lost_;
  }

  void Keep(Connection& connection) {
    load_.records_.push_back(connection.record);
    connection.last = connection.record;
    connection.has_last = true;
    connection.waiting = false;
    --waiting_;
  }

  static void Close(Connection& connection) {
    if (connection.fd >= 0) close(connection.fd);
    connection.fd = -1;
  }

  Load& load_;
  Options options_;
  Next next_;
  int epoll_ = -1;
  int timer_ = -1;
  std::vector<Connection> connections_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::int64_t armed_ = 0;
  double spacing_us_ = 0;
  std::size_t waiting_ = 0;
  bool ending_ = false;
  std::mt19937 random_{11};
};

Load::Load(const Options& options, Next next) : nodes_(options.ports.size()) {
  records_.reserve(std::min<std::size_t>(options.most, 1U << 20));
  thread_ =
      std::thread([this, options, next = std::move(next)] { Loop(*this, options, next).Run(); });
}

Load::~Load() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

Records Load::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  return std::move(records_);
}

std::int64_t Load::answered_otherwise(DecidedBy decided_by) const noexcept {
  std::int64_t sum = 0;
  for (std::size_t source = 0; source < std::size(by_source_); ++source) {
    if (source != static_cast<std::size_t>(decided_by)) sum += by_source_[source];
  }
  return sum;
}

std::int64_t Load::last_store_us() const noexcept {
  return *std::min_element(last_store_us_, last_store_us_ + nodes_);
}

std::int64_t Load::last_store_us(std::uint32_t key) const noexcept {
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  for (std::size_t node = 0; node < nodes_; ++node) {
    last = std::min(last, key_store_us_[node][key].load());
  }
  return last;
}

testing::AssertionResult Load::Progress(std::int64_t more) {
  const std::int64_t before = answered_;
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (answered_ < before + more) {
    if (std::chrono::steady_clock::now() > deadline) {
      auto failure = testing::AssertionFailure()
                     << test::kTiming << answered_ - before << " of " << more
                     << " responses in ten seconds; lost " << lost_ << ", waiting "
                     << sent_ - answered_ - lost_ << ", by decided_by";
      for (const auto& count : by_source_) failure << ' ' << count;
      return failure;
    }
    std::this_thread::sleep_for(1ms);
  }
  return testing::AssertionSuccess();
}

std::string IdentityOf(std::uint32_t key) { return "user-" + std::to_string(key); }

Load::Next DecideInTurn(std::string rule, std::uint32_t keys) {
  // All connections share one counter, so all keys are used equally often, from all nodes.
  return [rule = std::move(rule), keys, turn = 0U](std::uint32_t, const Record*,
                                                   LoadRequest& load_request) mutable {
    load_request.key = turn++ % keys;
    load_request.body.assign("{\"rule\":\"").append(rule).append("\",\"identity\":\"");
    load_request.body.append(IdentityOf(load_request.key)).append("\"}");
  };
}

Load::Next LeaseInTurn(std::string rule, std::uint32_t keys, std::chrono::microseconds hold) {
  return [rule = std::move(rule), keys, hold](std::uint32_t connection, const Record* last,
                                              LoadRequest& load_request) {
    const bool held = last != nullptr && last->op == Op::kAcquire && last->admitted();
    // The client does not know the outcome, so it releases the lease before the next acquire.
    const bool unknown = last != nullptr && last->op == Op::kAcquire && last->status != 429;
    load_request.op = held || unknown ? Op::kRelease : Op::kAcquire;
    load_request.path = load_request.op == Op::kRelease ? "/v1/release" : "/v1/acquire";
    load_request.key = connection % keys;
    load_request.wait = held ? hold : std::chrono::microseconds(0);
    load_request.body.assign("{\"rule\":\"").append(rule).append("\",\"identity\":\"");
    load_request.body.append(IdentityOf(load_request.key)).append("\",\"lease\":\"c");
    load_request.body.append(std::to_string(connection)).append("\"}");
  };
}

}  // namespace tidegate::redis_test
