// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "admin/admin_frontend.hpp"
#include "admin/audit.hpp"
#include "config/config.hpp"
#include "decision/pipeline.hpp"
#include "frontends/api_frontend.hpp"
#include "frontends/resp/resp_frontend.hpp"
#include "gateway/gateway.hpp"
#include "gateway/upstream_monitor.hpp"
#include "limiter/redis_store.hpp"
#include "net/reactor.hpp"
#include "rules/override.hpp"
#include "server/fleet_member.hpp"
#include "server/listener_group.hpp"
#include "server/outage_log.hpp"
#include "server/snapshot_compiler.hpp"
#include "store/shared_overrides.hpp"
#include "store/store.hpp"
#include "telemetry/access_log.hpp"
#include "telemetry/decision_metrics.hpp"

namespace tidegate {

class Server;

/// A reactor, the components that run on it, and its thread. Each member uses those above it, so
/// they are destroyed from the last to the first.
struct Worker {
  /// Uses the parts of `server` that exist before its workers, and joins its fleet.
  Worker(Server& server, const std::shared_ptr<const Snapshot>& snapshot);

  /// Uses `snapshot` for new requests. Must be called on the reactor's thread.
  void Use(const std::shared_ptr<const Snapshot>& snapshot);
  /// Frees unused memory. Must be called on the reactor's thread, outside of any request.
  void Trim();

  net::Reactor reactor;
  DecisionMetrics metrics;
  std::unique_ptr<RedisStore> redis_store;  ///< nullptr: the memory store decides.
  DecisionPipeline pipeline;
  ApiFrontend api;
  std::unique_ptr<RespFrontend> resp;  ///< nullptr: `listen.resp` is off.
  std::unique_ptr<Gateway> gateway;    ///< nullptr: `listen.gateway` is off.
  /// Set on the first reactor, if there is a gateway.
  std::unique_ptr<UpstreamMonitor> upstream_monitor;
  std::thread thread;
};

/// Counts and times of reloads. One thread at a time writes; any thread may read.
struct ReloadStatus {
  std::atomic<std::uint64_t> applied{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<bool> last_refused{false};
  std::atomic<std::int64_t> applied_at{0};  ///< Time in seconds since the epoch.
};

/// The service: creates store, workers, frontends and listeners, and starts, reloads, drains and
/// stops them. Start, Reload, Drain and Stop must be called on one controlling thread.
class Server {
 public:
  struct Options {
    int threads = 0;               ///< 0: one per core that the process may use.
    const Clock* clock = nullptr;  ///< Clock of the memory store; nullptr: the real clock.
    std::string version;
    std::uint64_t descriptors = 0;  ///< Limit of open file descriptors; 0: unknown.
    /// Called on a reactor's thread when a listener that had many connections has lost half of
    /// them. TrimMemory, called a moment later, can then free much memory.
    std::function<void()> on_subsided = [] {};
    /// If set, called on the thread of each reactor before anything else.
    std::function<void()> on_thread_start = {};
  };

  /// Returns a server that listens, but serves no connection and has no thread before Start; an
  /// Error if it cannot listen. Adds problems of the configuration to `problems`.
  [[nodiscard]] static Result<std::unique_ptr<Server>> Make(const Config& config,
                                                            const Options& options,
                                                            Problems& problems);
  ~Server();

  void Start();
  /// Compiles and publishes `config`. Returns false, and keeps the old configuration, if `config`
  /// has errors. Does not change listeners, limits and store (see NeedsRestart).
  bool Reload(const Config& config, Problems& problems);
  /// Sets the function that handles reload requests of operators; it may call back on any thread.
  void SetReloader(const Reloader& reloader);
  /// Counts a reload whose configuration could not be read.
  void NoteRefusedReload() noexcept;
  /// Returns the sections of `config` that take effect only after a restart.
  [[nodiscard]] std::vector<std::string> NeedsRestart(const Config& config) const {
    return compiler_->NeedsRestart(config);
  }

  /// Frees unused memory on all reactors, then calls `then` on the thread of one of them.
  void TrimMemory(const std::function<void()>& then);

  /// Makes /readyz answer 503 from now on. Everything else continues.
  void NotReady() noexcept { not_ready_ = true; }
  /// Stops accepting, finishes the requests in progress and closes all connections; then calls
  /// `drained` on the thread of some reactor. Stop may be called before that. The admin listener
  /// continues until Stop.
  void Drain(std::function<void()> drained);
  /// Stops all reactors without draining and waits for their threads.
  void Stop();

  [[nodiscard]] net::Endpoint api() const noexcept { return group(ListenerId::kApi).endpoint(); }
  [[nodiscard]] net::Endpoint admin() const { return group(ListenerId::kAdmin).endpoint(); }
  [[nodiscard]] net::Endpoint gateway() const { return group(ListenerId::kGateway).endpoint(); }
  [[nodiscard]] net::Endpoint resp() const { return group(ListenerId::kResp).endpoint(); }
  [[nodiscard]] std::size_t rule_count() const;
  /// Returns the memory store: the only store, or with Redis the store of `local` failure policies.
  [[nodiscard]] Store& store() noexcept { return *store_; }

  // --- For reports; must be called on the first reactor's thread ---
  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] const std::string& version() const noexcept { return options_.version; }
  [[nodiscard]] const std::string& node() const noexcept { return node_; }
  [[nodiscard]] std::chrono::steady_clock::duration uptime() const noexcept {
    return std::chrono::steady_clock::now() - started_;
  }
  [[nodiscard]] bool not_ready() const noexcept { return not_ready_; }
  /// Returns true if Stop was called. Thread-safe.
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }
  [[nodiscard]] StoreStats store_stats() const { return store_->Stats(); }
  [[nodiscard]] const std::vector<std::unique_ptr<Worker>>& workers() const noexcept {
    return workers_;
  }
  [[nodiscard]] const SnapshotCompiler& compiler() const noexcept { return *compiler_; }
  [[nodiscard]] const ReloadStatus& reloads() const noexcept { return reloads_; }
  [[nodiscard]] const FleetMember* fleet() const noexcept { return fleet_.get(); }
  [[nodiscard]] const AdminContext& admin_context() const noexcept { return *admin_context_; }
  [[nodiscard]] const AccessLog* access_log() const noexcept { return access_log_.get(); }
  [[nodiscard]] const net::BufferBudget& budget() const noexcept { return budget_; }
  [[nodiscard]] const ListenerGroup& group(ListenerId id) const noexcept {
    return *groups_[static_cast<std::size_t>(id)];
  }

 private:
  friend struct Worker;
  Server(const Config& config, const Options& options);
  [[nodiscard]] Result<void> Build(Problems& problems);
  void BuildAdmin();
  [[nodiscard]] std::unique_ptr<net::Listener> MakeListener(ListenerId id, Worker& worker,
                                                            net::Descriptor socket,
                                                            const net::Listener::Options& options);
  [[nodiscard]] ListenerGroup& group(ListenerId id) noexcept {
    return *groups_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] Worker& first() noexcept { return *workers_.front(); }
  /// Publishes a snapshot to every reactor. REQUIRES: compiling_ is held.
  void Publish(const std::shared_ptr<const Snapshot>& snapshot);
  /// Uses `key`, the fleet's HMAC key, instead of this node's key. Returns true if `key` is then in
  /// use.
  bool AdoptKey(const std::string& key);
  /// Applies changed overrides on all reactors. Must be called on the first reactor's thread.
  void OnOverrides(const SharedOverrides::Delta& delta);
  /// Calls `then` on the first reactor's thread when every reactor has run its earlier tasks.
  void AfterAll(const std::function<void()>& then);
  static void ShutDown(Worker& worker, std::chrono::steady_clock::time_point latest);
  [[nodiscard]] const Clock& clock() const noexcept {
    return options_.clock != nullptr ? *options_.clock : real_clock_;
  }

  const Config config_;
  const Options options_;
  const RealClock real_clock_;
  const std::string node_;    ///< This node's name in the fleet.
  FailureThrottle throttle_;  ///< Shared by all listeners.
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::atomic<bool> not_ready_{false};
  std::atomic<bool> draining_{false};
  std::atomic<bool> stopping_{false};
  ReloadStatus reloads_;

  const DescriptorPlan descriptors_;
  net::BufferBudget budget_;

  // Destroyed from the last to the first: listeners close their connections while the workers still
  // exist, and fleet and register stop their timers while the first reactor still exists.
  std::unique_ptr<Store> store_;
  std::unique_ptr<AccessLog> access_log_;
  mutable std::mutex compiling_;  ///< Held from compiling a snapshot until it is published.
  std::unique_ptr<SnapshotCompiler> compiler_;
  LiveOverrides overrides_{clock()};  ///< Used only on the first reactor's thread.
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<FleetMember> fleet_;                ///< nullptr: the memory store decides.
  std::unique_ptr<SharedOverrides> local_overrides_;  ///< The register of a node without a fleet.
  std::unique_ptr<AdminContext> admin_context_;
  std::unique_ptr<AuthAudit> auth_audit_;
  std::unique_ptr<OutageWatch> outage_watch_;  ///< nullptr: there is no Redis.
  std::unique_ptr<AdminFrontend> admin_frontend_;
  std::array<std::unique_ptr<ListenerGroup>, kListeners> groups_;  ///< Indexed by ListenerId.
};

// Reports of the admin API about a server. All must be called on the first reactor's thread.

/// Returns the metrics in the Prometheus text format.
[[nodiscard]] std::string MetricsText(const Server& server);
/// Returns the state of the server as JSON.
[[nodiscard]] std::string StatusJson(const Server& server);
/// Returns the rules and their counts as JSON.
[[nodiscard]] std::string RulesJson(const Server& server);
/// Returns the hottest keys as JSON, at most `most` of each kind.
[[nodiscard]] std::string HotJson(const Server& server, std::size_t most);

}  // namespace tidegate
