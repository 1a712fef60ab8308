// SPDX-License-Identifier: Apache-2.0
#include "server/doorway.hpp"

#include <utility>

#include "net/reactor.hpp"

namespace tidegate {
namespace {

net::TlsServer::Clients ClientsOf(ListenTls::Clients clients) noexcept {
  switch (clients) {
    case ListenTls::Clients::kNone:
      return net::TlsServer::Clients::kUnknown;
    case ListenTls::Clients::kOptional:
      return net::TlsServer::Clients::kMayBeKnown;
    case ListenTls::Clients::kRequired:
      break;
  }
  return net::TlsServer::Clients::kMustBeKnown;
}

}  // namespace

Result<std::shared_ptr<const net::TlsServer>> Doorway::MakeTls(const ListenSpec& spec) const {
  if (!spec.tls) return nullptr;
  net::TlsServer::Options options{.certificates = {},
                                  .client_ca_pem = spec.tls->client_ca_pem,
                                  .clients = ClientsOf(spec.tls->clients),
                                  .only_13 = spec.tls->min_version == ListenTls::Version::kTls13,
                                  .http = protocol_ == Protocol::kHttp};
  for (const ListenTls::Certificate& pair : spec.tls->certificates) {
    options.certificates.push_back({pair.certificate_pem, pair.key_pem});
  }
  return net::TlsServer::Make(options);
}

bool Doorway::Fits(const ListenSpec& now) const {
  ListenSpec later = now;
  if (later.tls && spec_.tls) later.tls = spec_.tls;
  return later == spec_;
}

Admission Doorway::AdmissionWith(const ListenSpec& now) const {
  ListenSpec taken = spec_;
  if (taken.tls && now.tls) taken.tls = now.tls;
  return Admission(taken);
}

Result<void> Doorway::Open(std::size_t reactors, net::Listener::Options options,
                           const MakeListener& make) {
  auto endpoint = net::Endpoint::Parse(spec_.address);
  if (!endpoint) return std::unexpected(std::move(endpoint.error()));
  if (auto free = net::CheckFree(*endpoint); !free) return free;
  auto tls = MakeTls(spec_);
  if (!tls) {
    return std::unexpected(
        Error{tls.error().code, "listen." + name_ + ".tls: " + tls.error().message});
  }
  options.open = &connections_;
  options.proxy_protocol = spec_.proxy_protocol;
  for (std::size_t i = 0; i < reactors; ++i) {
    auto socket = net::Listen(*endpoint);
    if (!socket) return std::unexpected(std::move(socket.error()));
    *endpoint = net::Endpoint::OfSocket(socket->get());  // Port 0: the others follow the first.
    listeners_.push_back(make(i, *std::move(socket), options));
    listeners_.back()->Use(*tls);
  }
  endpoint_ = *endpoint;
  return {};
}

void Doorway::Use(const std::shared_ptr<const net::TlsServer>& tls,
                  const net::Listener::Trusts& trusts) {
  for (const auto& listener : listeners_) {
    listener->reactor().Post([&listener = *listener, tls, trusts] {
      if (tls != nullptr) listener.Use(tls);
      listener.Trust(trusts);
    });
  }
}

void Doorway::Start() {
  for (const auto& listener : listeners_) listener->Start();
}

void Doorway::Drain(const std::function<void()>& drained) {
  for (const auto& listener : listeners_) {
    listener->reactor().Post([&listener = *listener, drained] { listener.Drain(drained); });
  }
}

void Doorway::CloseAll(const net::Reactor& reactor) {
  for (const auto& listener : listeners_) {
    if (&listener->reactor() == &reactor) listener->CloseAll();
  }
}

MetricsReport::Door Doorway::Stats() const {
  MetricsReport::Door door{.name = name_};
  for (const auto& listener : listeners_) {
    const net::HttpStats& stats = listener->stats();
    door.accepted += stats.accepted.load(std::memory_order_relaxed);
    door.open += stats.open.load(std::memory_order_relaxed);
    door.shed += stats.shed.load(std::memory_order_relaxed);
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
