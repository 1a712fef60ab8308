// SPDX-License-Identifier: Apache-2.0
#include "server/listener_group.hpp"

#include <string_view>
#include <utility>

#include "frontends/http_access.hpp"
#include "net/reactor.hpp"

namespace tidegate {
namespace {

AuthFailure::Reason ReasonOf(net::Rejection rejection) noexcept {
  using Reason = AuthFailure::Reason;
  switch (rejection) {
    case net::Rejection::kMissingCertificate:
      return Reason::kMissing;
    case net::Rejection::kCertificate:
      return Reason::kCertificate;
    case net::Rejection::kUntrustedProxy:
      return Reason::kUntrustedProxy;
    case net::Rejection::kProxyHeader:
      return Reason::kProxyHeader;
  }
  return Reason::kMissing;
}

}  // namespace

Result<void> ListenerGroup::Open(std::size_t reactors, net::Listener::Options options,
                                 Guards guards, const MakeListener& make) {
  if (off()) return {};
  auto endpoint = net::Endpoint::Parse(spec_.address);
  if (!endpoint) return std::unexpected(std::move(endpoint.error()));
  if (auto free = net::CheckFree(*endpoint); !free) return free;
  guards_ = std::move(guards);
  options.open = &connections_;
  options.per_address = guards_.per_address.get();
  options.proxy_protocol = spec_.proxy_protocol;
  for (std::size_t i = 0; i < reactors; ++i) {
    auto socket = net::Listen(*endpoint);
    if (!socket) return std::unexpected(std::move(socket.error()));
    *endpoint = net::Endpoint::OfSocket(socket->get());  // Port 0: all use the first one's port.
    listeners_.push_back(make(i, *std::move(socket), options));
    listeners_.back()->Notify(
        [this](net::Shed why, const net::Peer* peer) { guards_.shed_log->Note(why, peer); },
        guards_.on_subsided);
  }
  endpoint_ = *endpoint;
  return {};
}

void ListenerGroup::Use(const net::Reactor& reactor, const Snapshot& snapshot) {
  const auto& tls = snapshot.tls[static_cast<std::size_t>(id_)];
  for (const auto& listener : listeners_) {
    if (&listener->reactor() != &reactor) continue;
    if (tls != nullptr) listener->Use(tls);
    listener->Trust([rules = snapshot.rules](const net::Peer& peer) {
      return rules->client_policy().Trusts(Address(peer.bytes));
    });
    listener->SetOnRejected([this, access = snapshot.access](const net::Peer& peer,
                                                             net::Rejection rejection,
                                                             std::string_view problem) {
      // The connection is refused in any case, so the throttle's answer changes nothing.
      (void)failures_.Record({.peer = peer,
                              .reason = ReasonOf(rejection),
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

MetricsReport::Door ListenerGroup::Stats() const {
  MetricsReport::Door door{.name = name_};
  for (const auto& listener : listeners_) {
    const net::HttpStats& stats = listener->stats();
    door.accepted += stats.accepted.load(std::memory_order_relaxed);
    door.open += stats.open.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < net::kShedReasons; ++i) {
      door.shed[i] += stats.shed[i].load(std::memory_order_relaxed);
    }
    door.requests += stats.requests.load(std::memory_order_relaxed);
    door.refused += stats.refused.load(std::memory_order_relaxed);
    const net::AnswerCounts* const answers = listener->answers();
    if (answers == nullptr) continue;
    if (!door.responses) door.responses.emplace();
    for (std::size_t i = 0; i < door.responses->size(); ++i) {
      (*door.responses)[i] += answers->by_class[i].load(std::memory_order_relaxed);
    }
  }
  return door;
}

}  // namespace tidegate
