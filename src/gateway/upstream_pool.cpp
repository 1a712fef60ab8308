// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream_pool.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace tidegate {

namespace {

/// A member that keeps failing is tried again after five minutes at the latest.
constexpr std::chrono::minutes kLongest{5};

/// Returns true if one more member may be ejected: up to the configured share, never the last.
bool MayEject(const UpstreamSpec::Ejection& ejection, const Members& all,
              Member::Clock::time_point now) noexcept {
  std::size_t ejected = 0;
  std::size_t down = 0;
  for (const auto& member : all) {
    ejected += member->Ejected(now) ? 1 : 0;
    down += member->Up(now) ? 0 : 1;
  }
  if (down + 1 >= all.size()) return false;
  return (ejected + 1) * 100 <= all.size() * static_cast<std::size_t>(ejection.percent);
}

/// In a round of the reactor that is younger than this, the socket of an idle connection need not
/// be checked.
constexpr std::chrono::milliseconds kFresh{1};

/// Returns true if the socket has no input, end of stream or error, not even one that epoll has not
/// reported yet.
bool IsQuiet(int socket) noexcept {
  char byte = 0;
  return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

int ErrorOf(int socket) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/// Returns true for input, the end of the stream, or an error: all events but room for output.
constexpr bool IsInput(std::uint32_t events) noexcept {
  return (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0;
}

}  // namespace

void Balancer::Use(const Members& members) {
  std::vector<Seat> seats;
  for (const auto& member : members) {
    const auto known = std::ranges::find(seats_, member, &Seat::member);
    seats.push_back({member, known == seats_.end() ? 0 : known->credit});
  }
  seats_ = std::move(seats);
}

bool Balancer::Claim(Member& member) const noexcept {
  const std::uint32_t before = member.active.fetch_add(1, std::memory_order_relaxed);
  if (max_requests_ == 0 || before < max_requests_) return true;
  member.active.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

/// Chooses a member. Round robin: each candidate's credit grows by its weight; the member with the
/// highest credit is chosen, and loses the sum of all weights, so that the turns of a heavy member
/// are spread. Least requests: the member with the fewest requests for its weight is chosen; ties
/// are broken in turn.
std::size_t Balancer::Next(std::span<const Member* const> avoided, Member::Clock::time_point now,
                           bool& full) {
  std::size_t best = kNone;
  std::int64_t total = 0;
  std::uint64_t fewest = 0;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const std::size_t place =
        balance_ == UpstreamSpec::Balance::kLeastRequests ? (turn_ + i) % seats_.size() : i;
    Seat& seat = seats_[place];
    const Member& member = *seat.member;
    if (!member.Up(now) || std::ranges::find(avoided, &member) != avoided.end()) continue;
    const std::uint64_t active = member.active.load(std::memory_order_relaxed);
    if (max_requests_ != 0 && active >= max_requests_) {
      full = true;
      continue;
    }
    if (balance_ == UpstreamSpec::Balance::kLeastRequests) {
      // The load is (active + 1) / weight, in millionths.
      const std::uint64_t load =
          (active + 1) * 1'000'000 / static_cast<std::uint64_t>(member.weight);
      if (best == kNone || load < fewest) {
        best = place;
        fewest = load;
      }
      continue;
    }
    seat.credit += member.weight;
    total += member.weight;
    if (best == kNone || seat.credit > seats_[best].credit) best = place;
  }
  if (best == kNone) return kNone;
  if (balance_ == UpstreamSpec::Balance::kRoundRobin) seats_[best].credit -= total;
  turn_ = best + 1;
  return best;
}

Balancer::Picked Balancer::Pick(std::span<const Member* const> tried,
                                Member::Clock::time_point now) {
  bool full = false;
  for (const auto avoided : {tried, std::span<const Member* const>{}}) {
    // If the chosen member has reached max_requests because of another reactor, the next is tried.
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      const std::size_t index = Next(avoided, now, full);
      if (index == kNone) break;
      if (Claim(*seats_[index].member)) return {seats_[index].member, {}};
      full = true;
    }
    if (tried.empty()) break;
  }
  return {nullptr, full ? Lack::kFull : Lack::kDown};
}

bool NoteAttempt(Member& member, AttemptResult result, const UpstreamSpec::Ejection& ejection,
                 const Members& all, Member::Clock::time_point now) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  if (ejection.failures == 0) return false;
  if (result == AttemptResult::kGood) {
    // Usually both are zero: then nothing is written, and other CPUs keep their cache lines.
    if (member.failures.load(kRelaxed) != 0) member.failures.store(0, kRelaxed);
    if (member.ejections.load(kRelaxed) != 0 && !member.Ejected(now)) {
      member.ejections.store(0, kRelaxed);
    }
    return false;
  }
  const auto threshold = static_cast<std::uint32_t>(ejection.failures);
  if (member.failures.fetch_add(1, kRelaxed) + 1 < threshold) return false;
  if (member.Ejected(now) || !MayEject(ejection, all, now)) return false;
  const std::uint32_t times = member.ejections.fetch_add(1, kRelaxed) + 1;
  const auto time = std::min<std::chrono::nanoseconds>(ejection.time * times, kLongest);
  member.ejected_until.store((now + time).time_since_epoch().count(), kRelaxed);
  // When the member is back, one more failure ejects it again.
  member.failures.store(threshold - 1, kRelaxed);
  return true;
}

UpstreamConnection::UpstreamConnection(UpstreamPool& pool, std::shared_ptr<Member> member)
    : pool_(pool), member_(std::move(member)), channel_(pool.buffers()) {}

bool UpstreamConnection::Connect(std::string& problem, bool& ours) {
  const auto* const address = reinterpret_cast<const sockaddr*>(&member_->address.storage);
  net::Descriptor socket(
      ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto fail = [&](std::string text, bool is_ours) {
    problem = std::move(text);
    ours = is_ours;
    return false;
  };
  if (!socket) return fail(std::string("cannot create a socket: ") + std::strerror(errno), true);
  if (socket.get() >= pool_.max_descriptor()) {
    return fail(
        "the remaining file descriptors are reserved for admin, the store and files: raise "
        "LimitNOFILE",
        true);
  }
  const int on = 1;
  (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const int fd = socket.get();
  channel_.Open(std::move(socket));
  if (::connect(fd, address, member_->address.size) != 0 && errno != EINPROGRESS) {
    return fail(std::strerror(errno), errno == EADDRNOTAVAIL);  // This machine has no free port.
  }
  if (!pool_.reactor().Watch(fd, *this)) return fail("cannot add the socket to epoll", true);
  return true;  // Even if the socket is connected already: epoll reports that it is writable.
}

void UpstreamConnection::OnReady(std::uint32_t events) {
  if (state_ == State::kClosed) return;
  channel_.OnEvents(events);
  switch (state_) {
    case State::kConnecting:
      if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) OnConnected();
      return;
    case State::kShaking: return Shake();
    case State::kIdle:
      // The upstream has closed it, or has sent bytes without a request: it must not be used any
      // more.
      if (IsInput(events)) pool_.Discard(*this);
      return;
    case State::kUp:
      if (user_ != nullptr) user_->OnUpstreamReady();
      return;
    case State::kClosed: return;
  }
}

void UpstreamConnection::OnConnected() {
  if (const int error = ErrorOf(channel_.fd()); error != 0) return Fail(std::strerror(error));
  if (!member_->tls) {
    state_ = State::kUp;
    return user_->OnUpstreamUp();
  }
  if (!channel_.BeginTls(*pool_.upstream().tls(), pool_.upstream().ServerName(*member_))) {
    return Fail("cannot create a TLS session");
  }
  state_ = State::kShaking;
  Shake();
}

void UpstreamConnection::Shake() {
  switch (channel_.tls()->Handshake()) {
    case net::TlsSession::Shake::kMore: return;
    case net::TlsSession::Shake::kFailed: {
      const std::string problem = channel_.tls()->problem();
      return Fail(problem);
    }
    case net::TlsSession::Shake::kDone: state_ = State::kUp; return user_->OnUpstreamUp();
  }
}

void UpstreamConnection::Fail(const std::string& problem) {
  User* const user = std::exchange(user_, nullptr);
  pool_.Discard(*this);
  if (user != nullptr) user->OnUpstreamFailed(problem);
}

void UpstreamConnection::OnDeadline(net::Deadlines::Kind) { pool_.Discard(*this); }

UpstreamPool::UpstreamPool(net::Reactor& reactor, net::BufferPool& buffers,
                           const std::shared_ptr<Upstream>& upstream, int max_descriptor)
    : reactor_(reactor),
      buffers_(buffers),
      max_descriptor_(max_descriptor),
      upstream_(upstream),
      balancer_(upstream->spec().balance, upstream->spec().max_requests),
      budget_(upstream->spec().retries.percent) {
  Refresh();
}

UpstreamPool::~UpstreamPool() {
  for (const auto& seat : seats_) Empty(*seat);
  // Connections are still lent here only if the reactor has ended: their requests will not finish.
  lent_.clear_and_dispose([](UpstreamConnection* connection) { delete connection; });
}

void UpstreamPool::Refresh() {
  version_ = upstream_->version();
  members_ = upstream_->members();
  balancer_.Use(*members_);
  std::vector<std::unique_ptr<Seat>> seats;
  for (const auto& member : *members_) {
    const auto known = std::ranges::find_if(
        seats_, [&](const auto& seat) { return seat != nullptr && seat->member == member; });
    if (known != seats_.end()) {
      seats.push_back(std::move(*known));
    } else {
      seats.push_back(std::make_unique<Seat>());
      seats.back()->member = member;
    }
  }
  for (const auto& seat : seats_) {
    if (seat != nullptr) Empty(*seat);
  }
  seats_ = std::move(seats);
}

/// Returns an idle connection; nullptr if there is none. A connection that the upstream has closed,
/// or on which it has sent bytes, must not get a request: the bytes would be mistaken for the
/// response. epoll reports both, so a connection that was idle when this round began and has no
/// pending event can be used. Its socket must be checked (a system call, 2 % of a request) only if
/// the round began a while ago, or if the connection was returned since.
UpstreamConnection* UpstreamPool::TakeIdle(Seat& seat, Clock::time_point now) {
  BeginRound(seat);
  const bool fresh = now - reactor_.now() < kFresh;
  for (List* const list : {&seat.idle, &seat.returned}) {
    const bool known = fresh && list == &seat.idle;
    while (!list->empty()) {
      // The connection that was returned last is used, so that the others can be closed when idle
      // for too long.
      UpstreamConnection& connection = list->back();
      // A pending event has been reported by epoll, but OnReady has not been called for it yet.
      const bool pending = IsInput(connection.pending_events());
      if (!pending && (known || IsQuiet(connection.channel().fd()))) return &connection;
      Discard(connection);
    }
  }
  return nullptr;
}

UpstreamConnection* UpstreamPool::Lend(const std::shared_ptr<Member>& member,
                                       UpstreamConnection::User& user, Clock::time_point now,
                                       std::string& problem, bool& ours) {
  Seat* const seat = SeatOf(*member);
  if (UpstreamConnection* const idle = seat == nullptr ? nullptr : TakeIdle(*seat, now)) {
    idle->unlink();
    --seat->count;
    net::Deadlines::Disarm(*idle);
    idle->state_ = UpstreamConnection::State::kUp;
    idle->user_ = &user;
    lent_.push_back(*idle);
    return idle;
  }
  auto* const connection = new UpstreamConnection(*this, member);
  lent_.push_back(*connection);
  connection->user_ = &user;
  if (connection->Connect(problem, ours)) return connection;
  Discard(*connection);
  return nullptr;
}

void UpstreamPool::Return(UpstreamConnection& connection) {
  connection.user_ = nullptr;
  Seat* const seat = SeatOf(connection.member());
  net::Channel& channel = connection.channel();
  // The connection is not kept if it has bytes that belong to no response, or if the upstream has
  // ended it.
  const bool useful = channel.quiet() && !channel.blocked() && !channel.hung_up();
  if (seat == nullptr || !useful || seat->count >= upstream_->spec().keep_alive) {
    return Discard(connection);
  }
  (void)channel.Rest();  // The input is empty, so Rest needs no budget.
  connection.unlink();
  connection.state_ = UpstreamConnection::State::kIdle;
  BeginRound(*seat);
  seat->returned.push_back(connection);
  ++seat->count;
  net::Deadlines& deadlines = reactor_.deadlines();
  deadlines.Arm(connection, deadlines.KindFor(upstream_->spec().keep_alive_timeout),
                reactor_.now());
}

void UpstreamPool::Discard(UpstreamConnection& connection) {
  if (connection.state_ == UpstreamConnection::State::kIdle) {
    if (Seat* const seat = SeatOf(connection.member()); seat != nullptr && seat->count > 0) {
      --seat->count;
    }
  }
  connection.user_ = nullptr;
  connection.state_ = UpstreamConnection::State::kClosed;
  net::Deadlines::Disarm(connection);
  connection.channel().Close();
  connection.unlink();
  reactor_.Bury(&connection);
}

}  // namespace tidegate
