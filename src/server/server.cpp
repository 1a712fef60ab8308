// SPDX-License-Identifier: Apache-2.0
#include "server/server.hpp"

#include <sched.h>

#include <ctime>
#include <utility>

#include "rules/jwt.hpp"
#include "server/failure_metrics.hpp"
#include "server/fleet_key.hpp"
#include "server/gateway_metrics.hpp"
#include "server/redis_metrics.hpp"
#include "telemetry/exposition.hpp"
#include "telemetry/tally_metrics.hpp"

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

/// How long a stop waits for Redis to hear what is given back.
constexpr std::chrono::milliseconds kLastWords{50};

}  // namespace

Server::Worker::Worker(Server& server, const std::shared_ptr<const Policy>& policy)
    : reactor(DeadlinesOf(server.config_.limits)),
      tally(reactor.timers(), {.decisions = server.config_.metrics.decisions,
                               .hot_keys = server.config_.metrics.hot_keys,
                               .at_once = !server.config_.store.redis}),
      overrides(OverrideTable::Make({}, server.clock())),
      guard(server.config_.store.redis
                ? std::make_unique<Guard>(reactor, server.GuardOptions(server.workers_.empty()),
                                          *server.store_)
                : nullptr),
      api(store(server), tally, overrides, Admission(server.config_.listen.api),
          server.api_.refusals(), policy),
      resp(server.config_.listen.resp.off()
               ? nullptr
               : std::make_unique<RespFrontend>(
                     store(server), tally, overrides,
                     RespFrontend::Options{.admission = Admission(server.config_.listen.resp),
                                           .refusals = server.resp_.refusals(),
                                           .version = server.options_.version},
                     policy)) {}

AsyncStore& Server::Worker::store(Server& server) noexcept {
  return guard ? static_cast<AsyncStore&>(*guard) : *server.store_;
}

Server::Server(const Config& config, const Options& options)
    : config_(config),
      options_(options),
      key_names_(config.metrics.key_names),
      in_force_(config),
      key_(RandomKey()),
      store_(NewMemoryStore({.max_keys = config.store.max_keys,
                             .max_list_bytes = config.store.max_list_bytes,
                             .clock = options.clock,
                             .pages = config.store.redis ? Pages::kSmall : Pages::kHuge})),
      node_(RandomKey().substr(0, 16)),
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
  if (config.store.redis) {
    auto redis = RedisOptions(config.store);
    if (!redis) return std::unexpected(std::move(redis.error()));
    server->redis_ = *std::move(redis);
    if (config.identity.hmac_key.empty()) server->AgreeOnKey();
  }
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
  server->AddAdmin(policy);
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
    server->admin_desk_->routing = server->routing_;
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
    worker->gateway = std::make_unique<Gateway>(worker->reactor, worker->store(*this),
                                                worker->tally, worker->overrides, options);
  }
  Worker& first = *workers_.front();
  first.care = std::make_unique<UpstreamCare>(first.reactor, first.gateway->buffers());
  return {};
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
        if (worker.heartbeat) {
          worker.heartbeat->Start();
          redis_register_->Start();
        }
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
    last_refused_ = true;
    return false;
  }
  ++reloads_;
  last_refused_ = false;
  in_force_ = config;
  key_names_ = config.metrics.key_names;
  if (routing != nullptr) {
    const std::lock_guard routes(routing_mutex_);
    routing_ = routing;
  }
  Publish(policy, *secrets);
  return true;
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
  const Config::Listen& now = in_force_.listen;
  const Admission api = api_.AdmissionWith(now.api);
  const Admission resp = resp_.AdmissionWith(now.resp);
  const Admission admin = admin_.AdmissionWith(now.admin);
  for (auto& worker : workers_) {
    worker->reactor.Post([&worker = *worker, policy, routing, api, resp] {
      worker.api.Use(policy, api);
      if (worker.resp != nullptr) worker.resp->Use(policy, resp);
      if (worker.gateway != nullptr) worker.gateway->Use(policy, routing);
      if (worker.care != nullptr) worker.care->Use(routing->upstreams());
    });
  }
  workers_.front()->reactor.Post([this, policy, routing, admin] {
    admin_door_->Use(policy, admin);
    admin_desk_->routing = routing;
  });
  const std::array<Doorway*, 4> all = doorways();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i]->Use(i < secrets.size() ? secrets[i] : nullptr, TrustsOf(*policy));
  }
}

std::vector<std::string> Server::NeedsRestart(const Config& config) const {
  std::vector<std::string> changed;
  const Config::Listen& listen = config.listen;
  if (!api_.Fits(listen.api) || !admin_.Fits(listen.admin) || !gateway_.Fits(listen.gateway) ||
      !resp_.Fits(listen.resp)) {
    changed.emplace_back("listen");
  }
  Config::Store store = config.store;
  store.on_failure = config_.store.on_failure;  // The rules carry it.
  if (store != config_.store) changed.emplace_back("store");
  if (config.limits != config_.limits) changed.emplace_back("limits");
  if (config.access_log != config_.access_log) changed.emplace_back("access_log");
  Config::Metrics metrics = config.metrics;
  metrics.key_names = config_.metrics.key_names;  // Only what is shown.
  if (metrics != config_.metrics) changed.emplace_back("metrics");
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
      if (worker.heartbeat) {
        worker.heartbeat->Leave();
        redis_register_->Stop();
      }
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
  std::vector<const Tally*> tallies;
  std::vector<const Guard*> guards;
  std::vector<const Gateway*> gateways;
  for (const auto& worker : workers_) {
    counters.push_back(&worker->tally.counters());
    tallies.push_back(&worker->tally);
    if (worker->guard) guards.push_back(worker->guard.get());
    if (worker->gateway) gateways.push_back(worker->gateway.get());
  }
  std::vector<MetricsReport::Door> doors = {api_.Stats(), admin_.Stats()};
  if (!resp_.off()) doors.push_back(resp_.Stats());
  std::vector<MetricFamily> more = TallyMetrics(tallies);
  for (MetricFamily& family : FailureMetrics(guards)) more.push_back(std::move(family));
  for (MetricFamily& family : AdminMetrics()) more.push_back(std::move(family));
  if (config_.store.redis) {
    for (MetricFamily& family : RedisMetrics(guards, fleet_)) more.push_back(std::move(family));
  }
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
                 .store_max_entries = config_.store.max_keys,
                 .store_max_list_bytes = config_.store.max_list_bytes,
                 .reactors = workers_.size(),
                 .rules = rule_count_,
                 .reloads = reloads_,
                 .failed_reloads = failed_reloads_,
                 .last_reload_seconds = static_cast<double>(applied_at_.load()),
                 .last_reload_refused = last_refused_,
                 .doors = std::move(doors),
                 .more = std::move(more)});
}

}  // namespace tidegate
