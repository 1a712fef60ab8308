// SPDX-License-Identifier: Apache-2.0
#include "server/listener_group.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <expected>
#include <limits>
#include <utility>

#include "frontends/http_access.hpp"
#include "identity/address.hpp"
#include "net/reactor.hpp"

namespace tidegate {
namespace {

constexpr std::uint64_t kLeastReserved = 16;
constexpr std::uint64_t kMostReserved = 256;
/// With this many descriptors, a server with the default of limits.connections has room for 1,000
/// clients and as many connections to upstreams.
constexpr std::uint64_t kManyDescriptors = 4096;

int AsDescriptor(std::uint64_t number) noexcept {
  return static_cast<int>(std::min<std::uint64_t>(number, std::numeric_limits<int>::max()));
}

/// The reasons to record, indexed by net::Rejection.
constexpr std::array kReasons = {AuthFailure::Reason::kMissing, AuthFailure::Reason::kCertificate,
                                 AuthFailure::Reason::kUntrustedProxy,
                                 AuthFailure::Reason::kProxyHeader};

}  // namespace

DescriptorPlan PlanDescriptors(std::uint64_t limit, const Config& config) noexcept {
  constexpr int kAny = std::numeric_limits<int>::max();
  if (limit == 0) return {.limit = 0, .clients = kAny, .upstreams = kAny, .admin = kAny};
  const std::uint64_t reserved =
      std::min(limit / 2, std::clamp(limit / 8, kLeastReserved, kMostReserved));
  const std::uint64_t for_upstreams = config.listen.gateway.off() ? 0 : limit / 4;
  return {.limit = limit,
          .clients = AsDescriptor(limit - reserved - for_upstreams),
          .upstreams = AsDescriptor(limit - reserved),
          .admin = AsDescriptor(limit - reserved / 2)};
}

std::uint64_t DescriptorsNeeded(const Config& config) noexcept {
  const Config::Listen& listen = config.listen;
  std::uint64_t clients = 0;
  for (const ListenSpec* const spec : {&listen.api, &listen.admin, &listen.gateway, &listen.resp}) {
    if (!spec->off()) clients += config.limits.connections;
  }
  const std::uint64_t upstreams = listen.gateway.off() ? 0 : config.limits.connections;
  return clients + upstreams + kMostReserved;
}

std::uint64_t RaiseDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

void ReportFewDescriptors(std::uint64_t limit, const Config& config) {
  const std::uint64_t needed = DescriptorsNeeded(config);
  if (limit == 0 || limit >= needed) return;
  const Log::Fields fields = {
      {"descriptors", std::to_string(limit)},
      {"needed", std::to_string(needed)},
      {"connections_per_listener", std::to_string(config.limits.connections)}};
  // The default is more than most servers need, and the operator did not choose it.
  const bool is_default = config.limits.connections == Config::Limits{}.connections;
  if (is_default && limit >= kManyDescriptors) {
    Log::Info(
        "the file descriptors allow fewer connections than the default of limits.connections: "
        "further connections will be rejected; to accept more, raise LimitNOFILE of systemd or the "
        "hard limit of `ulimit -n`",
        fields);
    return;
  }
  Log::Warning(
      "too few file descriptors for limits.connections on every listener and connections to "
      "upstreams: connections will be rejected before that limit; raise LimitNOFILE of systemd or "
      "the hard limit of `ulimit -n`, or lower limits.connections",
      fields);
}

void ShedLog::Note(net::Shed why, const net::Peer* peer, Clock::time_point now) {
  const std::uint64_t count = intervals_[static_cast<std::size_t>(why)].Count(now);
  if (count == 0) return;
  const std::string rejected = std::to_string(count);
  if (why == net::Shed::kConnections) {
    return Log::Warning("connections rejected: the listener has reached limits.connections",
                        {{"listener", listener_},
                         {"limit", std::to_string(limits_.connections)},
                         {"rejected", rejected}});
  }
  if (why == net::Shed::kAddress) {
    return Log::Warning(
        "connections rejected: one address has reached limits.connections_per_address",
        {{"listener", listener_},
         {"peer", peer == nullptr ? "unknown" : Address(peer->bytes).Text()},
         {"limit", std::to_string(limits_.connections_per_address)},
         {"rejected", rejected}});
  }
  Log::Warning(
      "connections rejected: the process is running out of file descriptors; raise LimitNOFILE of "
      "systemd or the hard limit of `ulimit -n`, or lower limits.connections",
      {{"listener", listener_},
       {"descriptors", std::to_string(descriptors_.limit)},
       {"reserved", std::to_string(descriptors_.reserved())},
       {"rejected", rejected}});
}

std::size_t MinProgress(const Config::Limits& limits) noexcept {
  const double seconds = std::chrono::duration<double>(limits.body_timeout).count();
  return std::max<std::size_t>(
      1, static_cast<std::size_t>(static_cast<double>(limits.body_rate) * seconds));
}

net::Listener::Options ListenerGroup::OptionsWith(net::BufferBudget& budget) {
  const Config::Limits& limits = config_.limits;
  const bool admin = id_ == ListenerId::kAdmin;
  if (limits.connections_per_address != 0 && !admin) {
    per_address_ = std::make_unique<net::AddressCounts>(limits.connections_per_address,
                                                        config_.client_ip.ipv6_prefix);
  }
  net::Listener::Options options{
      .limits = {.header_bytes = limits.header_bytes,
                 .header_count = limits.header_count,
                 .target_bytes = limits.target_bytes,
                 .body_bytes = limits.body_bytes},
      .max_connections = limits.connections,
      .open = &connections_,
      .per_address = per_address_.get(),
      .budget = &budget,
      .max_descriptor = admin ? descriptors_.admin : descriptors_.clients,
      // A connection that sent no byte must not outlive one that waits for its next request.
      .silent_deadline = limits.header_timeout <= limits.idle_timeout
                             ? net::Deadlines::Kind::kHeader
                             : net::Deadlines::Kind::kIdle,
      .min_progress = MinProgress(limits),
      .proxy_protocol = spec_.proxy_protocol};
  // The gateway streams bodies, and each route limits their length.
  if (id_ == ListenerId::kGateway) {
    options.limits.body_bytes = std::numeric_limits<std::size_t>::max();
  }
  // Health checks must get through however many connections clients open.
  if (admin) options.when_full = net::Listener::WhenFull::kReplaceOldest;
  return options;
}

Result<void> ListenerGroup::Open(std::size_t reactors, net::BufferBudget& budget,
                                 const std::function<void()>& on_subsided,
                                 const MakeListener& make) {
  if (off()) return {};
  auto endpoint = net::Endpoint::Parse(spec_.address);
  if (!endpoint) return std::unexpected(std::move(endpoint.error()));
  if (auto free = net::CheckFree(*endpoint); !free) return free;
  const net::Listener::Options options = OptionsWith(budget);
  for (std::size_t i = 0; i < (id_ == ListenerId::kAdmin ? 1 : reactors); ++i) {
    auto socket = net::Listen(*endpoint);
    if (!socket) return std::unexpected(std::move(socket.error()));
    *endpoint = net::Endpoint::OfSocket(socket->get());  // Port 0: all listeners share one port.
    listeners_.push_back(make(i, *std::move(socket), options));
    listeners_.back()->Notify(
        [this](net::Shed why, const net::Peer* peer) { shed_log_.Note(why, peer); }, on_subsided);
  }
  endpoint_ = *endpoint;
  return {};
}

void ListenerGroup::Use(const net::Reactor& reactor, const Snapshot& snapshot) {
  const auto& tls = snapshot.tls[static_cast<std::size_t>(id_)];
  for (const auto& listener : listeners_) {
    if (&listener->reactor() != &reactor) continue;
    if (tls != nullptr) listener->SetTls(tls);
    listener->SetTrust([rules = snapshot.rules](const net::Peer& peer) {
      return rules->client_policy().Trusts(Address(peer.bytes));
    });
    listener->SetOnRejected([this, access = snapshot.access](const net::Peer& peer,
                                                             net::Rejection rejection,
                                                             std::string_view problem) {
      // The connection is refused in any case, so the result of the throttle is ignored.
      (void)failures_.Record({.peer = peer,
                              .reason = kReasons[static_cast<std::size_t>(rejection)],
                              .problem = problem,
                              .peers = PeersOf(*access, peer)});
    });
  }
}

void ListenerGroup::Start() {
  for (const auto& listener : listeners_) listener->Start();
}

void ListenerGroup::Drain(const std::function<void()>& drained) {
  for (const auto& listener : listeners_) {
    listener->reactor().Post([&listener = *listener, drained] { listener.Drain(drained); });
  }
}

void ListenerGroup::CloseAll(const net::Reactor& reactor) {
  for (const auto& listener : listeners_) {
    if (&listener->reactor() == &reactor) listener->CloseAll();
  }
}

ListenerGroup::Stats ListenerGroup::stats() const {
  Stats sum;
  const auto get = [](const std::atomic<std::uint64_t>& count) {
    return count.load(std::memory_order_relaxed);
  };
  for (const auto& listener : listeners_) {
    const net::HttpStats& stats = listener->stats();
    sum.accepted += get(stats.accepted);
    sum.open += get(stats.open);
    for (std::size_t i = 0; i < sum.shed.size(); ++i) sum.shed[i] += get(stats.shed[i]);
    sum.requests += get(stats.requests);
    sum.refused += get(stats.refused);
    const net::AnswerCounts* const answers = listener->answers();
    if (answers == nullptr) continue;
    if (!sum.responses) sum.responses.emplace();
    for (std::size_t i = 0; i < sum.responses->size(); ++i) {
      (*sum.responses)[i] += get(answers->by_class[i]);
    }
  }
  return sum;
}

}  // namespace tidegate
