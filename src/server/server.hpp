// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "admin/admin_door.hpp"
#include "frontends/api_frontend.hpp"
#include "frontends/resp/resp_frontend.hpp"
#include "gateway/gateway.hpp"
#include "gateway/upstream_care.hpp"
#include "limiter/guard.hpp"
#include "net/reactor.hpp"
#include "rules/config.hpp"
#include "server/doorway.hpp"
#include "store/fleet_register.hpp"
#include "store/redis/heartbeat.hpp"
#include "store/redis/redis_register.hpp"
#include "telemetry/tally.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// The service: one memory store, or a way to Redis on each reactor, a thread per reactor, and the
/// doors on them. Start, Reload, Drain and
/// Stop are for one controlling thread.
class Server {
 public:
  struct Options {
    int threads = 0;               ///< 0: one per core that the process may use.
    const Clock* clock = nullptr;  ///< Of the memory store; nullptr: the real one.
    std::string version;
  };

  /// Listens, but serves nobody before Start. An Error if an address cannot be listened on;
  /// problems of the rules go to `problems`.
  [[nodiscard]] static Result<std::unique_ptr<Server>> Make(const Config& config,
                                                            const Options& options,
                                                            Problems& problems);
  ~Server();

  /// Compiles `config` as a server would, for its problems alone.
  static void Check(const Config& config, Problems& problems);

  void Start();
  /// The rules, answers' form and inline quotas of `config`, on each reactor as soon as it has
  /// taken them over; the old ones stay in force if a problem of severity kError comes up.
  /// Listeners, limits and store stay as they are.
  bool Reload(const Config& config, Problems& problems);
  /// What operators' wishes to read the configuration again go to; it calls back on any thread.
  /// Without one they are told that there is no file.
  void SetReloader(const Reloader& reloader);
  /// Counts a configuration that could not even be read.
  void NoteRefusedReload() noexcept {
    ++failed_reloads_;
    last_refused_ = true;
    ReopenLog();
  }
  /// What of `config` would need a restart, one phrase each.
  [[nodiscard]] std::vector<std::string> NeedsRestart(const Config& config) const;

  /// From now on /readyz says that this one is on its way out; everything else goes on.
  void NotReady() noexcept { not_ready_ = true; }
  /// Accepts no more and ends all connections in good order; `drained` is called on some
  /// reactor's thread. Stop may be called before that. Admin goes on until Stop: /readyz says
  /// that this one is on its way out, and /metrics what it still does.
  void Drain(std::function<void()> drained);
  /// Ends at once.
  void Stop();

  [[nodiscard]] net::Endpoint api() const noexcept { return api_.endpoint(); }
  [[nodiscard]] net::Endpoint admin() const noexcept { return admin_.endpoint(); }
  [[nodiscard]] net::Endpoint gateway() const noexcept { return gateway_.endpoint(); }
  [[nodiscard]] net::Endpoint resp() const noexcept { return resp_.endpoint(); }
  [[nodiscard]] int threads() const noexcept { return static_cast<int>(workers_.size()); }
  [[nodiscard]] std::size_t rule_count() const noexcept { return rule_count_; }
  /// The memory store: the only one, or what `local` policies count in.
  [[nodiscard]] Store& store() noexcept { return *store_; }

 private:
  /// A reactor and what runs on it.
  struct Worker {
    Worker(Server& server, const std::shared_ptr<const Policy>& policy);
    [[nodiscard]] AsyncStore& store(Server& server) noexcept;

    net::Reactor reactor;
    Tally tally;
    OverrideDesk overrides;
    std::unique_ptr<Guard> guard;  ///< Where the store is Redis.
    ApiFrontend api;
    std::unique_ptr<RespFrontend> resp;           ///< Where there is one.
    std::unique_ptr<Gateway> gateway;             ///< Where there is one.
    std::unique_ptr<redis::Heartbeat> heartbeat;  ///< Of the first.
    std::unique_ptr<UpstreamCare> care;           ///< Of the first, with a gateway.
    std::thread thread;
  };

  Server(const Config& config, const Options& options);
  [[nodiscard]] std::shared_ptr<const Policy> Compile(const Config& config, Problems& problems);
  /// nullptr where there is no gateway, and where a problem was added.
  [[nodiscard]] std::shared_ptr<const Routing> CompileRoutes(const Config& config,
                                                             Problems& problems);
  [[nodiscard]] Result<void> AddGateways();
  [[nodiscard]] Result<void> Listen();
  /// What the listeners of `config` have for TLS, by doorway; nothing: a problem was added.
  using Secrets = std::vector<std::shared_ptr<const net::TlsServer>>;
  [[nodiscard]] std::optional<Secrets> MakeSecrets(const Config& config, Problems& problems) const;
  [[nodiscard]] bool KeepsGuards(const Config& config, Problems& problems) const;
  [[nodiscard]] std::array<Doorway*, 4> doorways() noexcept {
    return {&api_, &admin_, &gateway_, &resp_};
  }
  [[nodiscard]] std::string Metrics() const;
  // What the admin API tells, as JSON.
  [[nodiscard]] std::string StatusJson() const;
  [[nodiscard]] std::string RulesJson() const;
  [[nodiscard]] std::string HotJson(std::size_t most) const;
  void AddAdmin(const std::shared_ptr<const Policy>& policy);
  /// Calls back on the first reactor's thread once each reactor has done what it was told before.
  void AfterAll(const std::function<void()>& then);
  /// Of overrides and of changes by operators. On the first reactor's thread.
  [[nodiscard]] std::vector<MetricFamily> AdminMetrics() const;
  /// What the fleet's register holds now, to all reactors. On the first one's thread.
  void OnRegister(const FleetRegister::Table& table);
  /// What stands in Redis for a key. On the first reactor's thread.
  void ReadStored(const Charge& charge, std::function<void(Result<StoredState>)> done);
  [[nodiscard]] const Clock& clock() const noexcept {
    return options_.clock != nullptr ? *options_.clock : real_clock_;
  }
  [[nodiscard]] static Result<redis::Client::Options> RedisOptions(const Config::Store& store);
  [[nodiscard]] Guard::Options GuardOptions(bool first);
  void AgreeOnKey();
  void AddHeartbeat();
  /// The fleet has another HMAC key than this node: everything is hashed with it from now on. On
  /// the first reactor's thread.
  void AdoptKey(const std::string& key);
  void ReleaseGuards();
  void NoteApplied(const Policy& policy);
  /// Whoever rotates logs moves the file away and tells us to reload, whether there is something
  /// new to read or not.
  void ReopenLog();
  static void ShutDown(Worker& worker, std::chrono::steady_clock::time_point latest);
  /// To all reactors. `secrets`: empty, or one per doorway. REQUIRES: compiling_ is held.
  void Publish(const std::shared_ptr<const Policy>& policy, const Secrets& secrets);
  /// Whom the listeners believe about whom they speak for.
  [[nodiscard]] static net::Listener::Trusts TrustsOf(const Policy& policy);

  const Config config_;
  const Options options_;
  std::mutex compiling_;
  std::atomic<Config::Metrics::KeyNames> key_names_;
  Config in_force_;  ///< Guarded by compiling_, as the next.
  std::string key_;  ///< The HMAC key where none is configured: lasts over reloads.
  std::atomic<bool> key_agreed_{true};  ///< With the fleet; until then Redis is not asked.
  std::thread adopting_;
  redis::Client::Options redis_;  ///< Where the store is Redis.
  redis::Fleet fleet_;
  std::unique_ptr<Store> store_;
  RuleSlots slots_;
  RuleSlots route_slots_;
  RuleSlots upstream_slots_;
  std::unique_ptr<AccessLog> access_log_;
  mutable std::mutex routing_mutex_;
  std::shared_ptr<const Routing> routing_;  ///< Guarded by routing_mutex_.
  const RealClock real_clock_;
  const std::string node_;  ///< This one's name in the fleet.
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<FleetRegister> register_;
  std::uint64_t restored_ = 0;  ///< Times that it had gone. Of the first reactor.
  redis::RedisRegister* redis_register_ = nullptr;  ///< The same, where it is one.
  std::unique_ptr<AdminDesk> admin_desk_;
  std::unique_ptr<AdminDoor> admin_door_;
  // Each has a limit of its own: a full API does not lock its operators out.
  Doorway api_;
  Doorway admin_;
  Doorway gateway_;
  Doorway resp_;
  std::atomic<bool> not_ready_{false};
  std::atomic<bool> draining_{false};
  std::atomic<std::size_t> open_listeners_{0};
  std::atomic<std::uint64_t> reloads_{0};
  std::atomic<std::uint64_t> failed_reloads_{0};
  std::atomic<bool> last_refused_{false};
  std::atomic<std::int64_t> applied_at_{0};
  std::atomic<std::size_t> rule_count_{0};
};

}  // namespace tidegate
