// SPDX-License-Identifier: Apache-2.0
#include "server/fleet_member.hpp"

#include <random>
#include <string_view>
#include <utility>

#include "rules/keyed_hash.hpp"
#include "store/redis/agreement.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

/// Returns an id that identifies a key without revealing it.
std::string KeyId(const std::string& key) {
  std::string id(KeyedHash::kTextSize, '\0');
  KeyedHash::WriteText(KeyedHash(key)("tidegate: which key is this?"), id.data());
  return id;
}

Result<redis::Client::Options> RedisOptions(const Config::Store& store) {
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

void LogRedis(Guard::Severity severity, const std::string& what) {
  switch (severity) {
    case Guard::Severity::kInfo:
      return Log::Info(what);
    case Guard::Severity::kWarning:
      return Log::Warning(what);
    case Guard::Severity::kError:
      return Log::Error(what);
  }
}

}  // namespace

std::string RandomKey() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::string key(64, '\0');
  for (char& c : key) c = kDigits[random() % 16];
  return key;
}

Result<std::unique_ptr<FleetMember>> FleetMember::Make(const Config& config, std::string node,
                                                       Hooks hooks) {
  auto redis = RedisOptions(config.store);
  if (!redis) return std::unexpected(std::move(redis.error()));
  const std::string& configured = config.identity.hmac_key;
  std::unique_ptr<FleetMember> member(
      new FleetMember(std::move(node), configured.empty(), std::move(hooks)));
  member->redis_ = *std::move(redis);
  member->fleet_.nodes = config.store.nodes;
  member->key_ = configured.empty() ? RandomKey() : configured;
  if (member->agrees_) member->AgreeOnKey();
  return member;
}

FleetMember::~FleetMember() {
  if (adopting_.joinable()) adopting_.join();
}

void FleetMember::AgreeOnKey() {
  constexpr std::chrono::seconds kPatience{1};
  auto agreed = redis::AgreeOnSecret(redis_, key_, kPatience);
  if (agreed) {
    key_ = *std::move(agreed);
    return;
  }
  knows_key_ = false;
  Log::Warning("cannot read the fleet's HMAC key from Redis; failure policies decide until then",
               {{"error", agreed.error().message}});
}

Guard::Options FleetMember::GuardOptions() {
  Guard::Options options{.redis = redis_,
                         .nodes = [this] { return fleet_.nodes.load(std::memory_order_relaxed); }};
  if (!members_.empty()) return options;
  options.on_register = [this] { register_->OnChanged(); };
  options.log = &LogRedis;
  return options;
}

void FleetMember::Join(net::Reactor& reactor, Guard& guard) {
  members_.push_back({reactor, guard});
  if (members_.size() > 1) return;
  register_ = std::make_unique<redis::RedisRegister>(
      reactor, guard.client(),
      redis::RedisRegister::Listener{
          .on_change = hooks_.on_overrides,
          .on_problem =
              [](const std::string& problem) {
                Log::Error("cannot read overrides from Redis; keeping the known ones",
                           {{"error", problem}});
              },
          .on_restored =
              [this](std::size_t entries) {
                ++restored_;
                Log::Warning("restored overrides that Redis had lost",
                             {{"count", std::to_string(entries)}});
              }});
  heartbeat_ = std::make_unique<redis::Heartbeat>(
      reactor, guard.client(), fleet_,
      redis::Heartbeat::Options{.node = node_,
                                .key_id = KeyId(key_),
                                .secret = agrees_ ? key_ : std::string{},
                                .on_secret = [this](const std::string& other) { AdoptKey(other); },
                                .on_agreed =
                                    [this] {
                                      if (!adopting_key_) ReleaseGuards();
                                    }});
}

void FleetMember::Start() {
  for (const Member& member : members_) {
    member.reactor.Post([this, &guard = member.guard, first = &member == &members_.front()] {
      if (!knows_key_) guard.Hold();
      guard.Connect();
      if (!first) return;
      heartbeat_->Start();
      register_->Start();
    });
  }
}

void FleetMember::Leave() {
  heartbeat_->Leave();
  register_->Stop();
}

void FleetMember::ReleaseGuards() {
  if (knows_key_.exchange(true)) return;
  for (const Member& member : members_) {
    member.reactor.Post([&guard = member.guard] { guard.Release(); });
  }
  // Posted, so that it runs after the rules with a new key are in use.
  members_.front().reactor.Post(hooks_.on_key_known);
}

void FleetMember::AdoptKey(const std::string& key) {
  if (adopting_.joinable()) adopting_.join();
  heartbeat_->UseKey(KeyId(key), key);
  adopting_key_ = true;
  adopting_ = std::thread([this, key] {
    const bool adopted = hooks_.adopt_key(key);
    adopting_key_ = false;
    if (!adopted) return;
    ReleaseGuards();
    Log::Warning("using the fleet's HMAC key: the keys of secret identities have changed");
  });
}

}  // namespace tidegate
