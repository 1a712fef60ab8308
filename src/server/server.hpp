// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "admin/admin_frontend.hpp"
#include "admin/auth_audit.hpp"
#include "rules/config.hpp"
#include "rules/live_overrides.hpp"
#include "server/descriptor_plan.hpp"
#include "server/fleet_member.hpp"
#include "server/listener_group.hpp"
#include "server/outage_watch.hpp"
#include "server/snapshot_compiler.hpp"
#include "server/worker.hpp"
#include "store/fleet_register.hpp"
#include "telemetry/access_log.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// Counts and times of reloads. Written by one thread at a time, read by any.
struct ReloadStatus {
  std::atomic<std::uint64_t> applied{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<bool> last_refused{false};
  std::atomic<std::int64_t> applied_at{0};  ///< Seconds since the epoch.
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
    /// Called on a reactor's thread when half of many connections of a listener have ended: a
    /// moment later TrimMemory is worth its time.
    std::function<void()> on_subsided = [] {};
    /// Called first on the thread of each reactor, if it is set.
    std::function<void()> on_thread_start = {};
  };

  /// Listens, but serves no connection and has no thread before Start. Returns an Error if it
  /// cannot listen on an address. Adds problems of the configuration to `problems`.
  [[nodiscard]] static Result<std::unique_ptr<Server>> Make(const Config& config,
                                                            const Options& options,
                                                            Problems& problems);
  ~Server();

  void Start();
  /// Compiles `config` and publishes it to every reactor. If it has a problem of severity kError,
  /// returns false, and the old configuration stays in force. Does not change listeners, limits and
  /// store (NeedsRestart).
  bool Reload(const Config& config, Problems& problems);
  /// Sets the function that handles reload requests of operators; it may call back on any thread.
  void SetReloader(const Reloader& reloader);
  /// Counts a reload whose configuration could not be read.
  void NoteRefusedReload() noexcept;
  /// The sections of `config` that take effect only after a restart.
  [[nodiscard]] std::vector<std::string> NeedsRestart(const Config& config) const {
    return compiler_->NeedsRestart(config);
  }

  /// Frees memory that is kept for future requests, on all reactors; then calls `then` on the
  /// thread of one of them.
  void TrimMemory(const std::function<void()>& then);

  /// Makes /readyz answer 503 from now on. Everything else continues.
  void NotReady() noexcept { not_ready_ = true; }
  /// Stops accepting, finishes the requests in progress and closes all connections; then calls
  /// `drained` on the thread of some reactor. Stop may be called before that. The admin listener
  /// continues until Stop.
  void Drain(std::function<void()> drained);
  /// Stops all reactors without draining and waits for their threads.
  void Stop();

  [[nodiscard]] net::Endpoint api() const noexcept { return EndpointOf(ListenerId::kApi); }
  [[nodiscard]] net::Endpoint admin() const noexcept { return EndpointOf(ListenerId::kAdmin); }
  [[nodiscard]] net::Endpoint gateway() const noexcept { return EndpointOf(ListenerId::kGateway); }
  [[nodiscard]] net::Endpoint resp() const noexcept { return EndpointOf(ListenerId::kResp); }
  [[nodiscard]] int threads() const noexcept { return static_cast<int>(workers_.size()); }
  [[nodiscard]] std::size_t rule_count() const;
  /// The memory store: the only store, or with Redis the store of `local` failure policies.
  [[nodiscard]] Store& store() noexcept { return *store_; }

  // --- For reports (server_report.hpp), on the first reactor's thread ---
  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] const std::string& version() const noexcept { return options_.version; }
  [[nodiscard]] const std::string& node() const noexcept { return node_; }
  [[nodiscard]] std::chrono::steady_clock::duration uptime() const noexcept {
    return std::chrono::steady_clock::now() - started_;
  }
  [[nodiscard]] bool not_ready() const noexcept { return not_ready_; }
  /// Whether Stop was called. On any thread.
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
  Server(const Config& config, const Options& options);
  [[nodiscard]] Result<void> Build(Problems& problems);
  void BuildAdmin();
  /// Returns true if Redis has answered a call since the start; the memory store always answers.
  [[nodiscard]] bool StoreAnswered() const noexcept;
  [[nodiscard]] Result<void> Listen();
  [[nodiscard]] std::unique_ptr<net::Listener> MakeListener(ListenerId id, Worker& worker,
                                                            net::Descriptor socket,
                                                            const net::Listener::Options& options);
  [[nodiscard]] net::Endpoint EndpointOf(ListenerId id) const noexcept {
    return group(id).endpoint();
  }
  [[nodiscard]] ListenerGroup& group(ListenerId id) noexcept {
    return *groups_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] Worker& first() noexcept { return *workers_.front(); }
  /// Publishes a snapshot to every reactor. REQUIRES: compiling_ is held.
  void Publish(const std::shared_ptr<const Snapshot>& snapshot);
  void Use(Worker& worker, const std::shared_ptr<const Snapshot>& snapshot);
  /// Uses the HMAC key of the fleet, which differs from this node's. Returns true if it is in use.
  bool AdoptKey(const std::string& key);
  /// Applies changed overrides on all reactors. On the first reactor's thread.
  void OnOverrides(const FleetRegister::Delta& delta);
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
  std::atomic<std::size_t> draining_listeners_{0};
  ReloadStatus reloads_;

  const DescriptorPlan descriptors_;
  net::BufferBudget budget_;

  // Destroyed from the last to the first: listeners close their connections while the workers still
  // exist, and fleet and register stop their timers while the first reactor still exists.
  std::unique_ptr<Store> store_;
  std::unique_ptr<AccessLog> access_log_;
  mutable std::mutex compiling_;  ///< Held from compiling a snapshot until it is published.
  std::unique_ptr<SnapshotCompiler> compiler_;
  LiveOverrides overrides_{clock()};  ///< On the first reactor's thread.
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<FleetMember> fleet_;             ///< nullptr: the memory store decides.
  std::unique_ptr<FleetRegister> local_register_;  ///< The register of a node without a fleet.
  std::unique_ptr<AdminContext> admin_context_;
  std::unique_ptr<AuthAudit> auth_audit_;
  std::unique_ptr<OutageWatch> outage_watch_;  ///< nullptr: there is no Redis.
  std::unique_ptr<AdminFrontend> admin_frontend_;
  std::array<std::unique_ptr<ListenerGroup>, kListeners> groups_;  ///< By ListenerId.
};

}  // namespace tidegate
