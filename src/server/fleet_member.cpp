// SPDX-License-Identifier: Apache-2.0
#include "server/fleet_member.hpp"

#include <expected>

#include "base/random.hpp"
#include "identity/keyed_hash.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

/// Returns an id that identifies an HMAC key without revealing it.
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
  auto tls = net::TlsClient::Make(store.tls, net::TlsClient::Protocol::kNone);
  if (!tls) return std::unexpected(std::move(tls.error()));
  options.tls = *std::move(tls);
  return options;
}

void LogRedis(RedisStore::Severity severity, const std::string& what) {
  if (severity == RedisStore::Severity::kInfo) return Log::Info(what);
  (severity == RedisStore::Severity::kWarning ? &Log::Warning : &Log::Error)(what, {});
}

}  // namespace

Result<std::unique_ptr<FleetMember>> FleetMember::Make(const Config& config, std::string node,
                                                       Hooks hooks) {
  auto redis = RedisOptions(config.store);
  if (!redis) return std::unexpected(std::move(redis.error()));
  const std::string& configured = config.identity.hmac_key;
  std::unique_ptr<FleetMember> member(
      new FleetMember(std::move(node), configured.empty(), std::move(hooks)));
  member->redis_ = *std::move(redis);
  member->fleet_.nodes = config.store.nodes;
  member->key_ = configured.empty() ? RandomHex(kKeyDigits) : configured;
  if (member->agrees_) member->AgreeOnKey();
  return member;
}

void FleetMember::AgreeOnKey() {
  constexpr std::chrono::seconds kPatience{1};
  auto agreed = redis::AgreeOnSecret(redis_, key_, kPatience);
  if (agreed) {
    key_ = *std::move(agreed);
    return;
  }
  knows_key_ = false;
  Log::Warning(
      "cannot read the fleet's HMAC key from Redis; failure policies decide until it is read",
      {{"error", agreed.error().message}});
}

RedisStore::Options FleetMember::RedisStoreOptions() {
  RedisStore::Options options{
      .redis = redis_, .nodes = [this] { return fleet_.nodes.load(std::memory_order_relaxed); }};
  if (!members_.empty()) return options;
  options.on_register = [this] { register_->OnChanged(); };
  options.log = &LogRedis;
  return options;
}

void FleetMember::Join(net::Reactor& reactor, RedisStore& redis_store) {
  members_.push_back({reactor, redis_store});
  if (members_.size() > 1) return;
  register_ = std::make_unique<redis::RedisOverrides>(
      reactor, redis_store.client(),
      redis::RedisOverrides::Listener{
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
      reactor, redis_store.client(), fleet_,
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
    member.reactor.Post(
        [this, &redis_store = member.redis_store, first = &member == &members_.front()] {
          if (!knows_key_) redis_store.Hold();
          redis_store.Connect();
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
    member.reactor.Post([&redis_store = member.redis_store] { redis_store.Release(); });
  }
  // Posted, so that the hook runs after the rules with a new HMAC key are in use.
  members_.front().reactor.Post(hooks_.on_key_known);
}

void FleetMember::AdoptKey(const std::string& key) {
  if (adopting_.joinable()) adopting_.join();
  heartbeat_->UseKey(KeyId(key), key);
  adopting_key_ = true;
  adopting_ = std::jthread([this, key] {
    const bool adopted = hooks_.adopt_key(key);
    adopting_key_ = false;
    if (!adopted) return;
    ReleaseGuards();
    Log::Warning("switched to the fleet's HMAC key: identities are hashed differently now");
  });
}

}  // namespace tidegate
