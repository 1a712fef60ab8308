// SPDX-License-Identifier: Apache-2.0
#include "server/server.hpp"

#include <sched.h>

#include <ctime>
#include <limits>
#include <random>
#include <utility>

#include "net/http_listener.hpp"
#include "rules/jwt.hpp"
#include "rules/keyed_hash.hpp"
#include "server/gateway_metrics.hpp"
#include "server/redis_metrics.hpp"
#include "telemetry/exposition.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

/// The cores that this process may run on.
std::vector<int> Cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

/// 256 bits, printable.
std::string RandomKey() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::string key(64, '\0');
  for (char& c : key) c = kDigits[random() % 16];
  return key;
}

/// Tells keys apart without telling anything of them.
std::string KeyId(const std::string& key) {
  std::string id(KeyedHash::kTextSize, '\0');
  KeyedHash::WriteText(KeyedHash(key)("tidegate: which key is this?"), id.data());
  return id;
}

Problem ProblemOf(std::string where, std::string message) {
  return {Problem::Severity::kError, {}, std::move(where), std::move(message)};
}

std::shared_ptr<const Identifier> MakeIdentifier(const Config::Identity& identity,
                                                 const Config::ClientIp& client_ip,
                                                 const std::string& key, Problems& problems) {
  Identifier::Options options{.hmac_key = identity.hmac_key.empty() ? key : identity.hmac_key,
                              .ipv6_prefix = client_ip.ipv6_prefix,
                              .jwt = nullptr};
  if (const auto& jwt = identity.jwt) {
    auto verifier = JwtVerifier::Make({.hmac_secret = jwt->hmac_secret,
                                       .public_key_pem = jwt->public_key_pem,
                                       .unverified = jwt->unverified,
                                       .issuer = jwt->issuer,
                                       .audience = jwt->audience});
    if (!verifier) {
      problems.push_back(ProblemOf("identity.jwt", verifier.error().message));
      return nullptr;
    }
    options.jwt = *verifier;
  }
  return std::make_shared<const Identifier>(std::move(options));
}

net::Deadlines::Durations DeadlinesOf(const Config::Limits& limits) {
  // A connection that is on its way out gets a second for what may have been sent already.
  return {limits.idle_timeout, limits.header_timeout, limits.body_timeout, limits.body_timeout,
          std::chrono::seconds{1}};
}

/// Who may ask where a listener was opened as `before` and is `now` so: address and `auth` wait for
/// a restart, but certificates that clients are asked for are something to know them by at once.
Admission AdmissionOf(const ListenSpec& before, const ListenSpec& now) {
  ListenSpec spec = before;
  if (spec.tls && now.tls) spec.tls = now.tls;
  return Admission(spec);
}

/// How long a stop waits for Redis to hear what is given back.
constexpr std::chrono::milliseconds kLastWords{50};

}  // namespace

Server::Worker::Worker(Server& server, const std::shared_ptr<const Policy>& policy)
    : reactor(DeadlinesOf(server.config_.limits)),
      guard(server.config_.store.redis
                ? std::make_unique<Guard>(reactor, server.GuardOptions(server.workers_.empty()),
                                          *server.store_)
                : nullptr),
      api(store(server), counters, Admission(server.config_.listen.api), policy),
      resp(server.config_.listen.resp.off()
               ? nullptr
               : std::make_unique<RespDoor>(
                     store(server), counters,
                     RespDoor::Options{.admission = Admission(server.config_.listen.resp),
                                       .version = server.options_.version},
                     policy)) {}

AsyncStore& Server::Worker::store(Server& server) noexcept {
  return guard ? static_cast<AsyncStore&>(*guard) : *server.store_;
}

Server::Server(const Config& config, const Options& options)
    : config_(config),
      options_(options),
      in_force_(config),
      key_(RandomKey()),
      store_(NewMemoryStore({.max_keys = config.store.max_keys,
                             .max_list_bytes = config.store.max_list_bytes,
                             .clock = options.clock,
                             .pages = config.store.redis ? Pages::kSmall : Pages::kHuge})),
      api_("api", config.listen.api, Doorway::Protocol::kHttp),
      admin_("admin", config.listen.admin, Doorway::Protocol::kHttp),
      gateway_("gateway", config.listen.gateway, Doorway::Protocol::kHttp),
      resp_("resp", config.listen.resp, Doorway::Protocol::kResp) {
  fleet_.nodes = config.store.nodes;
}

Server::~Server() { Stop(); }

Result<std::unique_ptr<Server>> Server::Make(const Config& config, const Options& options,
                                             Problems& problems) {
  std::unique_ptr<Server> server(new Server(config, options));
  if (config.store.redis && config.identity.hmac_key.empty()) server->AgreeOnKey();
  const auto policy = server->Compile(config, problems);
  if (policy == nullptr) {
    return std::unexpected(Error{ErrorCode::kBadConfig, "the configuration has errors"});
  }
  server->NoteApplied(*policy);
  const int threads = options.threads > 0 ? options.threads : static_cast<int>(Cores().size());
  for (int i = 0; i < threads; ++i) {
    server->workers_.push_back(std::make_unique<Worker>(*server, policy));
  }
  Worker& first = *server->workers_.front();
  server->admin_door_ = std::make_unique<AdminDoor>(
      first.store(*server), Admission(config.listen.admin), policy->tokens,
      AdminDoor::Sources{
          .metrics = [server = server.get()] { return server->Metrics(); },
          .draining = [server = server.get()] { return server->not_ready_.load(); }});
  if (first.guard) server->AddHeartbeat();
  if (!config.listen.gateway.off()) {
    server->routing_ = server->CompileRoutes(config, problems);
    if (server->routing_ == nullptr) {
      return std::unexpected(Error{ErrorCode::kBadConfig, "the configuration has errors"});
    }
    if (auto added = server->AddGateways(); !added) {
      return std::unexpected(std::move(added.error()));
    }
    // Not posted: nobody may come in before there is a way to go.
    for (auto& worker : server->workers_) worker->gateway->Use(policy, server->routing_);
    first.care->Use(server->routing_->upstreams());
  }
  if (auto listening = server->Listen(); !listening) {
    return std::unexpected(std::move(listening.error()));
  }
  for (Doorway* const doorway : server->doorways()) {
    for (const auto& listener : doorway->listeners()) listener->Trust(TrustsOf(*policy));
  }
  return server;
}

void Server::Check(const Config& config, Problems& problems) {
  const auto identifier = MakeIdentifier(config.identity, config.client_ip, RandomKey(), problems);
  if (identifier != nullptr) (void)RuleSet::Compile(config, identifier, problems);
}

std::shared_ptr<const Policy> Server::Compile(const Config& config, Problems& problems) {
  Config::Identity identity = config.identity;
  if (config_.store.redis) identity.hmac_key = config_.identity.hmac_key;  // Needs a restart.
  auto identifier = MakeIdentifier(identity, config.client_ip, key_, problems);
  if (identifier == nullptr) return nullptr;
  auto rules = RuleSet::Compile(config, std::move(identifier), problems);
  if (rules == nullptr) return nullptr;
  auto policy = std::make_shared<Policy>();
  for (const Rule& rule : rules->rules()) policy->slots.push_back(slots_.SlotOf(rule.id));
  policy->rules = std::move(rules);
  policy->responses = config.responses;
  policy->api = config.api;
  policy->resp = config.resp;
  policy->tokens = std::make_shared<const Tokens>(config.access.tokens);
  return policy;
}

std::shared_ptr<const Routing> Server::CompileRoutes(const Config& config, Problems& problems) {
  if (config_.listen.gateway.off()) return nullptr;
  std::shared_ptr<const Routing> before;
  {
    const std::lock_guard lock(routing_mutex_);
    before = routing_;
  }
  return Routing::Make(config, before.get(), route_slots_, upstream_slots_, problems);
}

Result<void> Server::AddGateways() {
  if (config_.access_log.path != "off") {
    auto log = AccessLog::Open(config_.access_log.path);
    if (!log) return std::unexpected(std::move(log.error()));
    access_log_ = *std::move(log);
  }
  const Gateway::Options options{.limits = {.header_bytes = config_.limits.header_bytes,
                                            .header_count = config_.limits.header_count},
                                 .log = access_log_.get()};
  for (auto& worker : workers_) {
    worker->gateway =
        std::make_unique<Gateway>(worker->reactor, worker->store(*this), worker->counters, options);
  }
  Worker& first = *workers_.front();
  first.care = std::make_unique<UpstreamCare>(first.reactor, first.gateway->buffers());
  return {};
}

Result<void> Server::Listen() {
  const net::Listener::Options options{.limits = {.header_bytes = config_.limits.header_bytes,
                                                  .header_count = config_.limits.header_count,
                                                  .body_bytes = config_.limits.body_bytes},
                                       .max_connections = config_.limits.connections};
  net::Listener::Options streaming = options;
  // Bodies stream: the routes say how long they may be.
  streaming.limits.body_bytes = std::numeric_limits<std::size_t>::max();
  using Made = std::unique_ptr<net::Listener>;
  const auto open = [&](Doorway& doorway, std::size_t reactors, const net::Listener::Options& with,
                        const Doorway::MakeListener& make) -> Result<void> {
    if (doorway.off()) return {};
    return doorway.Open(reactors, with, make);
  };
  if (auto opened = open(api_, workers_.size(), options,
                         [&](std::size_t i, net::Descriptor socket, const auto& with) -> Made {
                           return std::make_unique<net::HttpListener>(
                               workers_[i]->reactor, std::move(socket), workers_[i]->api, with);
                         });
      !opened) {
    return opened;
  }
  if (auto opened = open(gateway_, workers_.size(), streaming,
                         [&](std::size_t i, net::Descriptor socket, const auto& with) -> Made {
                           return std::make_unique<GatewayListener>(workers_[i]->reactor,
                                                                    std::move(socket),
                                                                    *workers_[i]->gateway, with);
                         });
      !opened) {
    return opened;
  }
  if (auto opened = open(resp_, workers_.size(), options,
                         [&](std::size_t i, net::Descriptor socket, const auto& with) -> Made {
                           return std::make_unique<RespListener>(
                               workers_[i]->reactor, std::move(socket), *workers_[i]->resp, with);
                         });
      !opened) {
    return opened;
  }
  if (auto opened = open(admin_, 1, options,
                         [&](std::size_t i, net::Descriptor socket, const auto& with) -> Made {
                           return std::make_unique<net::HttpListener>(
                               workers_[i]->reactor, std::move(socket), *admin_door_, with);
                         });
      !opened) {
    return opened;
  }
  open_listeners_ =
      api_.listeners().size() + gateway_.listeners().size() + resp_.listeners().size();
  return {};
}

net::Listener::Trusts Server::TrustsOf(const Policy& policy) {
  return [rules = policy.rules](const net::Peer& peer) {
    return rules->client_policy().Trusts(Address(peer.bytes));
  };
}

std::optional<Server::Secrets> Server::MakeSecrets(const Config& config, Problems& problems) const {
  Secrets secrets;
  const auto add = [&](const Doorway& doorway, const ListenSpec& spec) {
    // Whether there is TLS at all is a matter of a restart.
    if (doorway.off() || !doorway.spec().tls || !spec.tls) return secrets.emplace_back(), true;
    auto made = doorway.MakeTls(spec);
    if (!made) {
      problems.push_back(ProblemOf("listen." + doorway.name() + ".tls", made.error().message));
      return false;
    }
    secrets.push_back(*std::move(made));
    return true;
  };
  const Config::Listen& listen = config.listen;
  if (add(api_, listen.api) && add(admin_, listen.admin) && add(gateway_, listen.gateway) &&
      add(resp_, listen.resp)) {
    return secrets;
  }
  return std::nullopt;
}

void Server::Start() {
  for (Doorway* const doorway : doorways()) doorway->Start();
  const std::vector<int> cores = Cores();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_[i];
    if (worker.guard) {
      worker.reactor.Post([this, &worker] {
        if (!key_agreed_) worker.guard->Hold();
        worker.guard->Connect();
        if (worker.heartbeat) worker.heartbeat->Start();
      });
    }
    // With more threads than cores the system places them better.
    const std::optional<int> core =
        workers_.size() <= cores.size() ? std::optional(cores[i]) : std::nullopt;
    worker.thread = std::thread([&worker, core] { worker.reactor.Run(core); });
  }
}

bool Server::Reload(const Config& config, Problems& problems) {
  ReopenLog();
  const std::lock_guard lock(compiling_);
  const auto policy = Compile(config, problems);
  const auto routing = policy == nullptr ? nullptr : CompileRoutes(config, problems);
  const auto secrets = MakeSecrets(config, problems);
  if (policy == nullptr || !secrets || !KeepsGuards(config, problems) ||
      (routing == nullptr && !config_.listen.gateway.off())) {
    ++failed_reloads_;
    return false;
  }
  ++reloads_;
  in_force_ = config;
  if (routing != nullptr) {
    const std::lock_guard routes(routing_mutex_);
    routing_ = routing;
  }
  Publish(policy, *secrets);
  return true;
}

/// The doors stay where they are, but tokens are taken over at once: what shall guard a door
/// instead may be something that needs a restart.
bool Server::KeepsGuards(const Config& config, Problems& problems) const {
  const Tokens before(in_force_.access.tokens);
  const Tokens now(config.access.tokens);
  bool kept = true;
  const auto check = [&](const char* name, ListenSpec Config::Listen::*door) {
    const ListenSpec& open = config_.listen.*door;
    ListenSpec wanted = config.listen.*door;
    if (wanted.tls && open.tls) wanted.tls = open.tls;
    if (wanted == open) return;  // It is as the configuration wants it, whatever that is.
    if (open.off() || !AdmissionOf(open, in_force_.listen.*door).Required(before) ||
        AdmissionOf(open, config.listen.*door).Required(now)) {
      return;
    }
    problems.push_back(ProblemOf(
        std::string("listen.") + name,
        "this door asks who calls, and would not any more: what it asked for is gone from the "
        "configuration, and a door is moved, or asks for something else, only by a restart"));
    kept = false;
  };
  check("api", &Config::Listen::api);
  check("admin", &Config::Listen::admin);
  check("resp", &Config::Listen::resp);
  return kept;
}

void Server::NoteApplied(const Policy& policy) {
  rule_count_ = policy.rules->rules().size();
  applied_at_ = std::time(nullptr);
}

void Server::ReopenLog() {
  if (access_log_ != nullptr) access_log_->Reopen();
}

void Server::Publish(const std::shared_ptr<const Policy>& policy, const Secrets& secrets) {
  NoteApplied(*policy);
  std::shared_ptr<const Routing> routing;
  {
    const std::lock_guard lock(routing_mutex_);
    routing = routing_;
  }
  const Config::Listen& before = config_.listen;
  const Config::Listen& now = in_force_.listen;
  const Admission api = AdmissionOf(before.api, now.api);
  const Admission resp = AdmissionOf(before.resp, now.resp);
  const Admission admin = AdmissionOf(before.admin, now.admin);
  for (auto& worker : workers_) {
    worker->reactor.Post([&worker = *worker, policy, routing, api, resp] {
      worker.api.Use(policy, api);
      if (worker.resp != nullptr) worker.resp->Use(policy, resp);
      if (worker.gateway != nullptr) worker.gateway->Use(policy, routing);
      if (worker.care != nullptr) worker.care->Use(routing->upstreams());
    });
  }
  workers_.front()->reactor.Post(
      [this, tokens = policy->tokens, admin] { admin_door_->Use(tokens, admin); });
  const std::array<Doorway*, 4> all = doorways();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i]->Use(i < secrets.size() ? secrets[i] : nullptr, TrustsOf(*policy));
  }
}

// --- The fleet -------------------------------------------------------------------

Guard::Options Server::GuardOptions(bool first) {
  const Config::Store& store = config_.store;
  Guard::Options options{.redis = {.url = *store.redis,
                                   .prefix = store.prefix,
                                   .deadline = store.deadline,
                                   .connect_timeout = store.connect_timeout},
                         .nodes = [this] { return fleet_.nodes.load(std::memory_order_relaxed); }};
  // All reactors meet with the same; one of them tells it.
  if (!first) return options;
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
  auto agreed = redis::AgreeOnSecret(*config_.store.redis, config_.store.prefix, key_, kPatience);
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
      redis::Heartbeat::Options{.node = RandomKey().substr(0, 16),
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

std::vector<std::string> Server::NeedsRestart(const Config& config) const {
  std::vector<std::string> changed;
  Config::Listen listen = config.listen;
  const auto same = [](ListenSpec& now, const ListenSpec& before) {
    if (now.tls && before.tls) now.tls = before.tls;  // Certificates are taken over.
  };
  same(listen.api, config_.listen.api);
  same(listen.admin, config_.listen.admin);
  same(listen.gateway, config_.listen.gateway);
  same(listen.resp, config_.listen.resp);
  if (listen != config_.listen) changed.emplace_back("listen");
  Config::Store store = config.store;
  store.on_failure = config_.store.on_failure;  // The rules carry it.
  if (store != config_.store) changed.emplace_back("store");
  if (config.limits != config_.limits) changed.emplace_back("limits");
  if (config.access_log != config_.access_log) changed.emplace_back("access_log");
  // One node with another key would have buckets of its own, and multiply every limit.
  if (config_.store.redis && config.identity.hmac_key != config_.identity.hmac_key) {
    changed.emplace_back("identity.hmac_key");
  }
  return changed;
}

void Server::Drain(std::function<void()> drained) {
  NotReady();
  if (draining_.exchange(true)) return;
  if (open_listeners_ == 0) return drained();
  const auto one = [this, drained = std::move(drained)] {
    if (--open_listeners_ == 0) drained();
  };
  for (Doorway* const doorway : {&api_, &gateway_, &resp_}) doorway->Drain(one);
}

/// When Redis has been told all, or at `latest`.
void Server::ShutDown(Worker& worker, std::chrono::steady_clock::time_point latest) {
  worker.reactor.Post([&worker, latest] {
    if (worker.guard->waiting() > 0 && std::chrono::steady_clock::now() < latest) {
      return ShutDown(worker, latest);
    }
    worker.guard->Shutdown();
    worker.reactor.Stop();
  });
}

void Server::Stop() {
  for (auto& worker : workers_) {
    if (!worker->guard || !worker->thread.joinable()) {
      worker->reactor.Stop();
      continue;
    }
    // What still waits for Redis is answered first: its exchanges must not be left behind.
    worker->reactor.Post([this, &worker = *worker] {
      // What requests hold is given back while Redis can still be told.
      gateway_.CloseAll(worker.reactor);
      if (worker.heartbeat) worker.heartbeat->Leave();
      ShutDown(worker, std::chrono::steady_clock::now() + kLastWords);
    });
  }
  for (auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
  if (adopting_.joinable()) adopting_.join();
}

std::string Server::Metrics() const {
  std::vector<const DecisionCounters*> counters;
  std::vector<const Guard*> guards;
  std::vector<const Gateway*> gateways;
  for (const auto& worker : workers_) {
    counters.push_back(&worker->counters);
    if (worker->guard) guards.push_back(worker->guard.get());
    if (worker->gateway) gateways.push_back(worker->gateway.get());
  }
  std::vector<Snapshot::Door> doors = {api_.Stats(), admin_.Stats()};
  if (!resp_.off()) doors.push_back(resp_.Stats());
  std::vector<MetricFamily> more;
  if (config_.store.redis) more = RedisMetrics(guards, fleet_);
  if (!gateways.empty()) {
    doors.push_back(gateway_.Stats());
    std::shared_ptr<const Routing> routing;
    {
      const std::lock_guard lock(routing_mutex_);
      routing = routing_;
    }
    for (MetricFamily& family :
         GatewayMetrics(gateways, route_slots_.Names(), upstream_slots_.Names(),
                        routing->upstreams(), access_log_.get())) {
      more.push_back(std::move(family));
    }
  }
  return Expose({.version = options_.version,
                 .rule_names = slots_.Names(),
                 .decisions = counters,
                 .store = store_->Stats(),
                 .rules = rule_count_,
                 .reloads = reloads_,
                 .failed_reloads = failed_reloads_,
                 .last_reload_seconds = static_cast<double>(applied_at_.load()),
                 .doors = std::move(doors),
                 .more = std::move(more)});
}

}  // namespace tidegate
