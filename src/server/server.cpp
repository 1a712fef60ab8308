// SPDX-License-Identifier: Apache-2.0
#include "server/server.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <expected>
#include <optional>
#include <utility>

#include "base/random.hpp"
#include "gateway/routing.hpp"
#include "net/http_listener.hpp"
#include "store/shared_overrides.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

/// Returns the cores that this process may run on.
std::vector<int> Cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

net::Deadlines::Durations DeadlinesOf(const Config::Limits& limits) {
  // A draining connection waits one second for a request that may be on its way.
  return {limits.idle_timeout, limits.header_timeout, limits.body_timeout, limits.body_timeout,
          std::chrono::seconds{1}};
}

/// Returns a function whose call number `count` calls `then`. Thread-safe.
std::function<void()> OnLastOf(std::size_t count, std::function<void()> then) {
  return [left = std::make_shared<std::atomic<std::size_t>>(count), then = std::move(then)] {
    if (--*left == 0) then();
  };
}

/// The longest time that Stop waits for Redis to receive releases and refunds.
constexpr std::chrono::milliseconds kStopPatience{50};

}  // namespace

Worker::Worker(Server& server, const std::shared_ptr<const Snapshot>& snapshot)
    : reactor(DeadlinesOf(server.config_.limits)),
      metrics(reactor.timers(), {.decisions = server.config_.metrics.decisions,
                                 .hot_keys = server.config_.metrics.hot_keys,
                                 .at_once = server.fleet_ == nullptr}),
      redis_store(server.fleet_ ? std::make_unique<RedisStore>(
                                      reactor, server.fleet_->RedisStoreOptions(), *server.store_)
                                : nullptr),
      pipeline(redis_store ? static_cast<AsyncStore&>(*redis_store) : *server.store_, metrics,
               snapshot, server.overrides_.table()),
      api(pipeline, server.group(ListenerId::kApi).failures()) {
  const bool first = server.workers_.empty();
  if (redis_store) server.fleet_->Join(reactor, *redis_store);
  if (!server.config_.listen.resp.off()) {
    resp = std::make_unique<RespFrontend>(pipeline, server.group(ListenerId::kResp).failures(),
                                          server.version(), &server.budget_);
  }
  if (snapshot->routes == nullptr) return;
  gateway = std::make_unique<Gateway>(
      reactor, pipeline,
      Gateway::Options{.log = server.access_log_.get(),
                       .budget = &server.budget_,
                       .max_descriptor = server.descriptors_.upstreams,
                       .min_progress = MinProgress(server.config_.limits)});
  if (!first) return;
  upstream_monitor = std::make_unique<UpstreamMonitor>(reactor, gateway->buffers());
  upstream_monitor->Use(snapshot->routes->upstreams());
}

void Worker::Use(const std::shared_ptr<const Snapshot>& snapshot) {
  pipeline.Use(snapshot);
  if (gateway != nullptr) gateway->OnSnapshot();
  if (upstream_monitor != nullptr) upstream_monitor->Use(snapshot->routes->upstreams());
}

void Worker::Trim() {
  pipeline.Trim();
  if (resp != nullptr) resp->buffers().Trim();
  if (gateway != nullptr) gateway->Trim();
}

Server::Server(const Config& config, const Options& options)
    : config_(config),
      options_(options),
      node_(RandomHex(16)),
      throttle_(RandomSeed()),
      descriptors_(PlanDescriptors(options.descriptors, config)),
      budget_(config.limits.buffer_bytes),
      store_(NewMemoryStore({.max_keys = config.store.max_keys,
                             .max_list_bytes = config.store.max_list_bytes,
                             .clock = options.clock},
                            config.store.redis ? Pages::kSmall : Pages::kHuge)) {
  for (std::size_t i = 0; i < kListeners; ++i) {
    groups_[i] = std::make_unique<ListenerGroup>(static_cast<ListenerId>(i), config_, descriptors_,
                                                 throttle_);
  }
}

Server::~Server() { Stop(); }

Result<std::unique_ptr<Server>> Server::Make(const Config& config, const Options& options,
                                             Problems& problems) {
  std::unique_ptr<Server> server(new Server(config, options));
  if (auto built = server->Build(problems); !built) {
    return std::unexpected(std::move(built.error()));
  }
  return server;
}

Result<void> Server::Build(Problems& problems) {
  if (config_.store.redis) {
    auto fleet = FleetMember::Make(
        config_, node_,
        {.adopt_key = [this](const std::string& key) { return AdoptKey(key); },
         .on_key_known = [this] { admin_context_->has_fleet_key = true; },
         .on_overrides = [this](const SharedOverrides::Delta& delta) { OnOverrides(delta); }});
    if (!fleet) return std::unexpected(std::move(fleet.error()));
    fleet_ = *std::move(fleet);
  }
  compiler_ = std::make_unique<SnapshotCompiler>(
      config_, fleet_ ? fleet_->hmac_key() : RandomHex(kKeyDigits));
  const auto snapshot = compiler_->Compile(config_, problems);
  if (snapshot == nullptr) {
    return std::unexpected(Error{ErrorCode::kBadConfig, "the configuration has errors"});
  }
  reloads_.applied_at = std::time(nullptr);
  if (snapshot->routes != nullptr && config_.access_log.path != "off") {
    auto log = AccessLog::Open(config_.access_log.path);
    if (!log) return std::unexpected(std::move(log.error()));
    access_log_ = *std::move(log);
  }
  const int threads = options_.threads > 0 ? options_.threads : static_cast<int>(Cores().size());
  for (int i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(*this, snapshot));
  }
  BuildAdmin();
  for (std::size_t i = 0; i < kListeners; ++i) {
    auto opened = groups_[i]->Open(
        workers_.size(), budget_, options_.on_subsided,
        [&](std::size_t worker, net::Descriptor socket, const net::Listener::Options& options) {
          return MakeListener(static_cast<ListenerId>(i), *workers_[worker], std::move(socket),
                              options);
        });
    if (!opened) return opened;
  }
  for (const auto& worker : workers_) {
    for (const auto& group : groups_) group->Use(worker->reactor, *snapshot);
  }
  return {};
}

void Server::BuildAdmin() {
  if (!fleet_) {
    local_overrides_ = std::make_unique<LocalOverrides>(
        clock(), [this](const SharedOverrides::Delta& delta) { OnOverrides(delta); });
  }
  admin_context_.reset(
      new AdminContext{.pipeline = first().pipeline,
                       .shared_overrides = fleet_ ? fleet_->shared_overrides() : *local_overrides_,
                       .node = node_,
                       .store = *store_,
                       .redis_client = fleet_ ? &first().redis_store->client() : nullptr,
                       .key_prefix = config_.store.prefix,
                       .has_fleet_key = !fleet_ || fleet_->knows_key()});
  if (fleet_) outage_watch_ = std::make_unique<OutageWatch>(*this);
  auth_audit_ =
      std::make_unique<AuthAudit>(first().reactor, admin_context_->shared_overrides, node_);
  for (const auto& group : groups_) {
    group->failures().SetAudit([this](const std::string& listener, const AuthFailure& failure) {
      auth_audit_->Add(listener, failure);
    });
  }
  const auto store_answered = [this] {
    return std::ranges::any_of(workers_, [](const auto& worker) {
      return !worker->redis_store || worker->redis_store->redis_stats().calls.get() > 0;
    });
  };
  admin_frontend_ = std::make_unique<AdminFrontend>(
      *admin_context_, group(ListenerId::kAdmin).failures(),
      AdminFrontend::Sources{.metrics = [this] { return MetricsText(*this); },
                             .draining = [this] { return not_ready(); },
                             .store_answered = store_answered,
                             .status = [this] { return StatusJson(*this); },
                             .rules = [this] { return RulesJson(*this); },
                             .hot = [this](std::size_t most) { return HotJson(*this, most); }});
}

std::unique_ptr<net::Listener> Server::MakeListener(ListenerId id, Worker& worker,
                                                    net::Descriptor socket,
                                                    const net::Listener::Options& options) {
  net::Reactor& reactor = worker.reactor;
  if (id == ListenerId::kGateway) {
    return std::make_unique<GatewayListener>(reactor, std::move(socket), *worker.gateway, options);
  }
  if (id == ListenerId::kResp) {
    return std::make_unique<RespListener>(reactor, std::move(socket), *worker.resp, options);
  }
  const bool admin = id == ListenerId::kAdmin;
  if (!admin) worker.api.SetPort(net::Endpoint::OfSocket(socket.get()).port());
  net::HttpHandler& handler = admin ? static_cast<net::HttpHandler&>(*admin_frontend_) : worker.api;
  return std::make_unique<net::HttpListener>(reactor, std::move(socket), handler, options);
}

bool Server::Reload(const Config& config, Problems& problems) {
  if (access_log_ != nullptr) access_log_->Reopen();
  const std::lock_guard lock(compiling_);
  const auto snapshot = compiler_->Compile(config, problems);
  reloads_.last_refused = snapshot == nullptr;
  ++(snapshot == nullptr ? reloads_.refused : reloads_.applied);
  if (snapshot == nullptr) return false;
  Publish(snapshot);
  return true;
}

void Server::NoteRefusedReload() noexcept {
  ++reloads_.refused;
  reloads_.last_refused = true;
  // A log rotation moves the log file and requests a reload, even if no configuration has changed.
  if (access_log_ != nullptr) access_log_->Reopen();
}

void Server::Publish(const std::shared_ptr<const Snapshot>& snapshot) {
  reloads_.applied_at = std::time(nullptr);
  for (const auto& worker : workers_) {
    worker->reactor.Post([this, &worker = *worker, snapshot] {
      worker.Use(snapshot);
      for (const auto& group : groups_) group->Use(worker.reactor, *snapshot);
    });
  }
}

bool Server::AdoptKey(const std::string& key) {
  const std::lock_guard lock(compiling_);
  const auto snapshot = compiler_->CompileWithKey(key);
  if (snapshot == nullptr) return false;
  Publish(snapshot);
  return true;
}

void Server::SetReloader(const Reloader& reloader) {
  Reloader reload = [this, reloader](const std::string& by, const auto& done) {
    reloader(by, [this, done](const ReloadReport& report) {
      AfterAll([done, report] { done(report); });
    });
  };
  first().reactor.Post([this, reload] { admin_context_->reload = reload; });
}

void Server::AfterAll(const std::function<void()>& then) {
  const auto done = OnLastOf(workers_.size(), [this, then] { first().reactor.Post(then); });
  for (const auto& worker : workers_) worker->reactor.Post(done);
}

void Server::TrimMemory(const std::function<void()>& then) {
  for (const auto& worker : workers_) {
    worker->reactor.Post([&worker = *worker] { worker.Trim(); });
  }
  AfterAll(then);
}

std::size_t Server::rule_count() const {
  const std::lock_guard lock(compiling_);
  return compiler_->current()->rules->rules().size();
}

void Server::OnOverrides(const SharedOverrides::Delta& delta) {
  const auto update = std::make_shared<const LiveOverrides::Update>(overrides_.Apply(delta));
  if (update->invalid > 0) {
    Log::Warning("ignoring invalid overrides in the store",
                 {{"count", std::to_string(update->invalid)}});
  }
  for (const auto& worker : workers_) {
    const auto use = [&worker = *worker, update] {
      worker.pipeline.Use(update->table);
      if (!worker.redis_store) return;
      for (const OverrideKey& key : update->keys) {
        worker.redis_store->ForgetDenials(key.rule, key.identity);
      }
    };
    // The first reactor, which runs this, applies the change before the operator gets an answer.
    if (worker == workers_.front()) {
      use();
    } else {
      worker->reactor.Post(use);
    }
  }
}

void Server::Start() {
  if (access_log_ != nullptr) access_log_->Start();
  for (const auto& group : groups_) group->Start();
  if (fleet_) fleet_->Start();
  const std::vector<int> cores = Cores();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_[i];
    // Threads are pinned only if there is a core for each.
    const std::optional<int> core =
        workers_.size() <= cores.size() ? std::optional(cores[i]) : std::nullopt;
    worker.thread = std::thread([&worker, core, started = options_.on_thread_start] {
      if (started) started();
      worker.reactor.Run(core);
    });
  }
}

void Server::Drain(std::function<void()> drained) {
  NotReady();
  if (draining_.exchange(true)) return;
  std::size_t listeners = 0;
  constexpr std::array kDrained = {ListenerId::kApi, ListenerId::kGateway, ListenerId::kResp};
  for (const ListenerId id : kDrained) listeners += group(id).listeners().size();
  if (listeners == 0) return drained();
  const auto one = OnLastOf(listeners, std::move(drained));
  for (const ListenerId id : kDrained) group(id).Drain(one);
}

/// Stops the reactor when Redis has answered all calls, or at `latest`.
void Server::ShutDown(Worker& worker, std::chrono::steady_clock::time_point latest) {
  worker.reactor.Post([&worker, latest] {
    if (worker.redis_store->waiting() > 0 && std::chrono::steady_clock::now() < latest) {
      return ShutDown(worker, latest);
    }
    worker.redis_store->Shutdown();
    worker.reactor.Stop();
  });
}

void Server::Stop() {
  stopping_ = true;
  for (const auto& worker : workers_) {
    if (!worker->redis_store || !worker->thread.joinable()) {
      worker->reactor.Stop();
      continue;
    }
    worker->reactor.Post([this, &worker = *worker] {
      // Leases are released while Redis can still be reached.
      group(ListenerId::kGateway).CloseAll(worker.reactor);
      if (&worker == &first()) fleet_->Leave();
      ShutDown(worker, std::chrono::steady_clock::now() + kStopPatience);
    });
  }
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
  if (outage_watch_ != nullptr) outage_watch_->Stop();
}

}  // namespace tidegate
