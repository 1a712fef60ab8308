// SPDX-License-Identifier: Apache-2.0
// The server as one of a fleet: its way to Redis, its heartbeat, and the key that all share.
#include "server/fleet_key.hpp"
#include "server/server.hpp"
#include "store/redis/agreement.hpp"
#include "telemetry/log.hpp"

namespace tidegate {

Result<redis::Client::Options> Server::RedisOptions(const Config::Store& store) {
  redis::Client::Options options{.url = *store.redis,
                                 .prefix = store.prefix,
                                 .deadline = store.deadline,
                                 .connect_timeout = store.connect_timeout,
                                 .server_name = store.tls.server_name,
                                 .sentinel_user = store.sentinel.user,
                                 .sentinel_password = store.sentinel.password};
  if (!store.redis->tls) return options;
  auto tls = net::TlsClient::Make({.ca_pem = store.tls.ca_pem,
                                   .certificate_pem = store.tls.certificate_pem,
                                   .key_pem = store.tls.key_pem,
                                   .verify = store.tls.verify,
                                   .http = false});
  if (!tls) return std::unexpected(std::move(tls.error()));
  options.tls = *std::move(tls);
  return options;
}

Guard::Options Server::GuardOptions(bool first) {
  Guard::Options options{.redis = redis_,
                         .nodes = [this] { return fleet_.nodes.load(std::memory_order_relaxed); }};
  // All reactors meet with the same; one of them tells it.
  if (!first) return options;
  options.on_register = [this] { redis_register_->OnChanged(); };
  options.log = [](Guard::Severity severity, const std::string& what) {
    switch (severity) {
      case Guard::Severity::kInfo:
        return Log::Info(what);
      case Guard::Severity::kWarning:
        return Log::Warning(what);
      case Guard::Severity::kError:
        return Log::Error(what);
    }
  };
  return options;
}

void Server::AgreeOnKey() {
  constexpr std::chrono::seconds kPatience{1};
  auto agreed = redis::AgreeOnSecret(redis_, key_, kPatience);
  if (agreed) {
    key_ = *std::move(agreed);
  } else {
    key_agreed_ = false;
    Log::Warning(
        "no HMAC key could be agreed on with the fleet yet; failure policies answer until "
        "Redis does",
        {{"why", agreed.error().message}});
  }
}

void Server::AddHeartbeat() {
  Worker& first = *workers_.front();
  const bool agreed = config_.identity.hmac_key.empty();
  const std::string& key = agreed ? key_ : config_.identity.hmac_key;
  first.heartbeat = std::make_unique<redis::Heartbeat>(
      first.reactor, first.guard->client(), fleet_,
      redis::Heartbeat::Options{.node = node_,
                                .key_id = KeyId(key),
                                .secret = agreed ? key_ : std::string{},
                                .on_secret = [this](const std::string& other) { AdoptKey(other); },
                                .on_agreed = [this] { ReleaseGuards(); }});
}

void Server::ReleaseGuards() {
  if (key_agreed_.exchange(true)) return;
  for (auto& worker : workers_) {
    worker->reactor.Post([&guard = *worker->guard] { guard.Release(); });
  }
  // After the rules that know the key, if it is another one.
  workers_.front()->reactor.Post([this] { admin_desk_->named = true; });
}

void Server::AdoptKey(const std::string& key) {
  // On the first reactor's thread; compiling many rules would keep it from its connections.
  if (adopting_.joinable()) adopting_.join();
  workers_.front()->heartbeat->UseKey(KeyId(key), key);
  adopting_ = std::thread([this, key] {
    const std::lock_guard lock(compiling_);
    key_ = key;
    Problems ignored;
    const auto policy = Compile(in_force_, ignored);
    if (policy == nullptr) return;
    Publish(policy, {});
    ReleaseGuards();
    Log::Warning(
        "the fleet's HMAC key is in use now: identities are hashed anew, and their "
        "buckets are those of the fleet");
  });
}

}  // namespace tidegate
