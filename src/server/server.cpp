// SPDX-License-Identifier: Apache-2.0
#include "server/server.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "net/http_listener.hpp"
#include "server/server_report.hpp"
#include "store/local_register.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

/// Returns the cores that this process may run on.
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

std::uint64_t RandomSeed() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}

/// How long Stop waits for Redis to receive releases and refunds.
constexpr std::chrono::milliseconds kStopPatience{50};

/// A connection without a byte must not outlive one that waits for its next request.
net::Deadlines::Kind SilentDeadline(const Config::Limits& limits) {
  return limits.header_timeout <= limits.idle_timeout ? net::Deadlines::Kind::kHeader
                                                      : net::Deadlines::Kind::kIdle;
}

/// Returns the bytes that a client must move between two deadlines to keep up `body_rate`.
std::size_t MinProgress(const Config::Limits& limits) {
  const double seconds = std::chrono::duration<double>(limits.body_timeout).count();
  return std::max<std::size_t>(
      1, static_cast<std::size_t>(static_cast<double>(limits.body_rate) * seconds));
}

}  // namespace

// --- Building -------------------------------------------------------------------

Server::Server(const Config& config, const Options& options)
    : config_(config),
      options_(options),
      node_(RandomKey().substr(0, 16)),
      throttle_(RandomSeed()),
      descriptors_(PlanDescriptors(options.descriptors, config)),
      budget_(config.limits.buffer_bytes),
      store_(NewMemoryStore({.max_keys = config.store.max_keys,
                             .max_list_bytes = config.store.max_list_bytes,
                             .clock = options.clock,
                             .pages = config.store.redis ? Pages::kSmall : Pages::kHuge})),
      groups_{
          std::make_unique<ListenerGroup>(ListenerId::kApi, "api", config.listen.api, throttle_),
          std::make_unique<ListenerGroup>(ListenerId::kAdmin, "admin", config.listen.admin,
                                          throttle_),
          std::make_unique<ListenerGroup>(ListenerId::kGateway, "gateway", config.listen.gateway,
                                          throttle_),
          std::make_unique<ListenerGroup>(ListenerId::kResp, "resp", config.listen.resp,
                                          throttle_)} {}

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
         .on_overrides = [this](const FleetRegister::Delta& delta) { OnOverrides(delta); }});
    if (!fleet) return std::unexpected(std::move(fleet.error()));
    fleet_ = *std::move(fleet);
  }
  compiler_ =
      std::make_unique<SnapshotCompiler>(config_, fleet_ ? fleet_->hmac_key() : RandomKey());
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
    workers_.push_back(std::make_unique<Worker>(
        Worker::Options{.config = config_,
                        .store = *store_,
                        .fleet = fleet_.get(),
                        .snapshot = snapshot,
                        .overrides = overrides_.table(),
                        .api_failures = group(ListenerId::kApi).failures(),
                        .resp_failures = group(ListenerId::kResp).failures(),
                        .access_log = access_log_.get(),
                        .budget = budget_,
                        .upstream_descriptors = descriptors_.upstreams,
                        .min_progress = MinProgress(config_.limits),
                        .version = options_.version,
                        .first = i == 0}));
    if (fleet_) fleet_->Join(workers_.back()->reactor, *workers_.back()->guard);
  }
  BuildAdmin();
  if (auto listening = Listen(); !listening) return listening;
  for (const auto& worker : workers_) {
    for (const auto& group : groups_) group->Use(worker->reactor, *snapshot);
  }
  return {};
}

void Server::BuildAdmin() {
  if (!fleet_) {
    local_register_ = std::make_unique<LocalRegister>(
        clock(), [this](const FleetRegister::Delta& delta) { OnOverrides(delta); });
  }
  admin_context_.reset(
      new AdminContext{.pipeline = first().pipeline,
                       .fleet_register = fleet_ ? fleet_->fleet_register() : *local_register_,
                       .node = node_});
  admin_context_->stored_as = [this](const Charge& charge) {
    std::string name;
    if (fleet_) redis::KeyNames(config_.store.prefix).AppendKey(name, charge);
    return name;
  };
  admin_context_->read_stored = [this](const Charge& charge, auto done) {
    if (fleet_) return ReadStored(first().guard->client(), charge, std::move(done));
    done(ReadStored(*store_, charge));
  };
  if (fleet_) {
    admin_context_->has_fleet_key = fleet_->knows_key();
    admin_context_->store_problem = [&client = first().guard->client()] {
      return client.problem();
    };
  }
  if (fleet_) outage_watch_ = std::make_unique<OutageWatch>(*this);
  auth_audit_ = std::make_unique<AuthAudit>(first().reactor, admin_context_->fleet_register, node_);
  for (const auto& group : groups_) {
    group->failures().SetAudit([this](const std::string& listener, const AuthFailure& failure) {
      auth_audit_->Add(listener, failure);
    });
  }
  admin_frontend_ = std::make_unique<AdminFrontend>(
      *admin_context_, group(ListenerId::kAdmin).failures(),
      AdminFrontend::Sources{.metrics = [this] { return MetricsText(*this); },
                             .draining = [this] { return not_ready(); },
                             .store_answered = [this] { return StoreAnswered(); },
                             .status = [this] { return StatusJson(*this); },
                             .rules = [this] { return RulesJson(*this); },
                             .hot = [this](std::size_t most) { return HotJson(*this, most); }});
}

bool Server::StoreAnswered() const noexcept {
  return std::ranges::any_of(workers_, [](const auto& worker) {
    return !worker->guard || worker->guard->redis_stats().calls.get() > 0;
  });
}

Result<void> Server::Listen() {
  const net::Listener::Options options{.limits = {.header_bytes = config_.limits.header_bytes,
                                                  .header_count = config_.limits.header_count,
                                                  .target_bytes = config_.limits.target_bytes,
                                                  .body_bytes = config_.limits.body_bytes},
                                       .max_connections = config_.limits.connections,
                                       .budget = &budget_,
                                       .max_descriptor = descriptors_.clients,
                                       .silent_deadline = SilentDeadline(config_.limits),
                                       .min_progress = MinProgress(config_.limits)};
  net::Listener::Options streaming = options;
  // The gateway streams bodies, and each route limits their length.
  streaming.limits.body_bytes = std::numeric_limits<std::size_t>::max();
  // Health checks must get through however many connections clients open.
  net::Listener::Options admin = options;
  admin.max_descriptor = descriptors_.admin;
  admin.when_full = net::Listener::WhenFull::kReplaceOldest;
  for (std::size_t i = 0; i < kListeners; ++i) {
    const auto id = static_cast<ListenerId>(i);
    const std::size_t per_address = config_.limits.connections_per_address;
    auto opened = groups_[i]->Open(
        id == ListenerId::kAdmin ? 1 : workers_.size(),
        id == ListenerId::kGateway ? streaming
        : id == ListenerId::kAdmin ? admin
                                   : options,
        {.per_address =
             per_address == 0 || id == ListenerId::kAdmin
                 ? nullptr
                 : std::make_unique<net::AddressCounts>(per_address, config_.client_ip.ipv6_prefix),
         .shed_log = std::make_unique<ShedLog>(groups_[i]->name(), descriptors_, config_.limits),
         .on_subsided = options_.on_subsided},
        [&](std::size_t worker, net::Descriptor socket, const net::Listener::Options& with) {
          return MakeListener(id, *workers_[worker], std::move(socket), with);
        });
    if (!opened) return opened;
  }
  return {};
}

std::unique_ptr<net::Listener> Server::MakeListener(ListenerId id, Worker& worker,
                                                    net::Descriptor socket,
                                                    const net::Listener::Options& options) {
  net::Reactor& reactor = worker.reactor;
  switch (id) {
    case ListenerId::kApi:
      worker.api.SetPort(net::Endpoint::OfSocket(socket.get()).port());
      return std::make_unique<net::HttpListener>(reactor, std::move(socket), worker.api, options);
    case ListenerId::kAdmin:
      return std::make_unique<net::HttpListener>(reactor, std::move(socket), *admin_frontend_,
                                                 options);
    case ListenerId::kGateway:
      return std::make_unique<GatewayListener>(reactor, std::move(socket), *worker.gateway,
                                               options);
    case ListenerId::kResp:
      break;
  }
  return std::make_unique<RespListener>(reactor, std::move(socket), *worker.resp, options);
}

// --- Configuration ----------------------------------------------------------------

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
    worker->reactor.Post([this, &worker = *worker, snapshot] { Use(worker, snapshot); });
  }
}

void Server::Use(Worker& worker, const std::shared_ptr<const Snapshot>& snapshot) {
  worker.Use(snapshot);
  for (const auto& group : groups_) group->Use(worker.reactor, *snapshot);
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
  const auto left = std::make_shared<std::atomic<std::size_t>>(workers_.size());
  for (const auto& worker : workers_) {
    worker->reactor.Post([this, left, then] {
      if (--*left == 0) first().reactor.Post(then);
    });
  }
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

// --- Overrides -----------------------------------------------------

void Server::OnOverrides(const FleetRegister::Delta& delta) {
  const auto update = std::make_shared<const LiveOverrides::Update>(overrides_.Apply(delta));
  if (update->invalid > 0) {
    Log::Warning("ignoring invalid overrides in the store",
                 {{"count", std::to_string(update->invalid)}});
  }
  for (const auto& worker : workers_) {
    const auto use = [&worker = *worker, update] {
      worker.pipeline.Use(update->table);
      if (!worker.guard) return;
      for (const OverrideKey& key : update->keys) {
        worker.guard->ForgetDenials(key.rule, key.identity);
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

// --- Start and stop -----------------------------------------------------------------

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
  draining_listeners_ = listeners;
  const auto one = [this, drained = std::move(drained)] {
    if (--draining_listeners_ == 0) drained();
  };
  for (const ListenerId id : kDrained) group(id).Drain(one);
}

/// Stops the reactor when Redis has answered all calls, or at `latest`.
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
  stopping_ = true;
  for (const auto& worker : workers_) {
    if (!worker->guard || !worker->thread.joinable()) {
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
