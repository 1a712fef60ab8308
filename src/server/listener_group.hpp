// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "decision/snapshot.hpp"
#include "frontends/auth_failures.hpp"
#include "net/endpoint.hpp"
#include "net/listener.hpp"
#include "server/snapshot_compiler.hpp"
#include "telemetry/log.hpp"

namespace tidegate {

/// The division of the file descriptors of a process, so that clients cannot take those that health
/// checks, the store and log files need. The system always assigns the lowest free number, so the
/// number of a new descriptor shows how many are in use.
struct DescriptorPlan {
  std::uint64_t limit = 0;  ///< Descriptors that the process may open; 0: unknown.
  int clients = 0;          ///< Clients of all listeners but admin get descriptors below this.
  int upstreams = 0;        ///< Connections to upstreams get descriptors below this.
  /// Clients of the admin listener get descriptors below this. If all of those are in use, a new
  /// connection replaces the oldest idle one.
  int admin = 0;

  /// Returns how many descriptors only the admin listener, the store and files can use.
  [[nodiscard]] std::uint64_t reserved() const noexcept {
    return limit == 0 ? 0 : limit - static_cast<std::uint64_t>(upstreams);
  }
};

/// Returns a plan that reserves an eighth of `limit`, at least 16 and at most 256 descriptors: half
/// of them for the admin listener, half for the store and files. With a gateway a quarter of
/// `limit` is for connections to upstreams. If `limit` is 0 (unknown), nothing is reserved.
[[nodiscard]] DescriptorPlan PlanDescriptors(std::uint64_t limit, const Config& config) noexcept;

/// Returns the number of descriptors that the configured limits may need: one for each connection
/// of each listener, one to an upstream for each connection of the gateway, and the reserve.
[[nodiscard]] std::uint64_t DescriptorsNeeded(const Config& config) noexcept;

/// Raises the limit of open file descriptors as far as the system permits, because each connection
/// needs one. Returns the new limit; 0 if it is unknown.
[[nodiscard]] std::uint64_t RaiseDescriptors();

/// Logs that `limit` descriptors are too few for the connections that the configuration permits: as
/// a warning if limits.connections differs from its default or `limit` is below 4,096, otherwise as
/// information.
void ReportFewDescriptors(std::uint64_t limit, const Config& config);

/// Logs that a listener sheds connections, and what to do about it: at most one line a minute for
/// each reason, with the number of connections since the last line. Thread-safe.
class ShedLog {
 public:
  using Clock = LogInterval::Clock;
  static constexpr std::chrono::minutes kInterval{1};

  ShedLog(std::string listener, const DescriptorPlan& descriptors, const Config::Limits& limits)
      : listener_(std::move(listener)), descriptors_(descriptors), limits_(limits) {}

  /// `peer` is nullptr if the connection could not be accepted.
  void Note(net::Shed why, const net::Peer* peer, Clock::time_point now = Clock::now());

 private:
  const std::string listener_;
  const DescriptorPlan descriptors_;
  const Config::Limits limits_;
  /// One interval for each net::Shed.
  std::array<LogInterval, net::kShedReasons> intervals_{
      LogInterval(kInterval), LogInterval(kInterval), LogInterval(kInterval)};
};

/// The listeners of one frontend, one on each of its reactors, and the state that they share.
class ListenerGroup {
 public:
  /// The counts of all listeners of the group together.
  struct Stats {
    std::uint64_t accepted = 0;
    std::uint64_t open = 0;
    std::array<std::uint64_t, net::kShedReasons> shed{};  ///< Rejected connections by net::Shed.
    std::uint64_t requests = 0;
    std::uint64_t refused = 0;
    /// Responses by class of status, 1xx to 5xx; nullopt if the frontend does not count them here.
    std::optional<std::array<std::uint64_t, net::AnswerCounts::kClasses>> responses = {};
  };

  /// Config, descriptors and throttle must outlive the group.
  ListenerGroup(ListenerId id, const Config& config, const DescriptorPlan& descriptors,
                FailureThrottle& throttle)
      : id_(id),
        name_(kListenSections[static_cast<std::size_t>(id)].name),
        spec_(config.listen.*kListenSections[static_cast<std::size_t>(id)].spec),
        config_(config),
        descriptors_(descriptors),
        failures_(name_, throttle),
        shed_log_(name_, descriptors, config.limits) {}

  [[nodiscard]] bool off() const noexcept { return spec_.off(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Returns the address of the listeners, with the real port if port 0 was configured.
  [[nodiscard]] const net::Endpoint& endpoint() const noexcept { return endpoint_; }

  using MakeListener = std::function<std::unique_ptr<net::Listener>(
      std::size_t reactor, net::Descriptor socket, const net::Listener::Options& options)>;
  /// Listens on each of the first `reactors` reactors (admin only on one), but accepts nothing
  /// before Start. Calls `on_subsided` on a reactor's thread when a listener that had many
  /// connections has lost half of them. Does not listen if the group is off.
  [[nodiscard]] Result<void> Open(std::size_t reactors, net::BufferBudget& budget,
                                  const std::function<void()>& on_subsided,
                                  const MakeListener& make);
  /// Uses the snapshot's TLS and trusted proxies for new connections on one reactor. Must be called
  /// on that reactor's thread.
  void Use(const net::Reactor& reactor, const Snapshot& snapshot);

  void Start();
  /// Stops accepting. Each of listeners() calls `drained` once, on its reactor's thread.
  void Drain(const std::function<void()>& drained);
  [[nodiscard]] const std::vector<std::unique_ptr<net::Listener>>& listeners() const noexcept {
    return listeners_;
  }
  /// Closes all connections on one reactor. Must be called on that reactor's thread.
  void CloseAll(const net::Reactor& reactor);
  [[nodiscard]] Stats stats() const;
  [[nodiscard]] AuthFailures& failures() noexcept { return failures_; }
  [[nodiscard]] const AuthFailures& failures() const noexcept { return failures_; }

 private:
  [[nodiscard]] net::Listener::Options OptionsWith(net::BufferBudget& budget);

  const ListenerId id_;
  const std::string name_;
  const ListenSpec& spec_;
  const Config& config_;
  const DescriptorPlan& descriptors_;
  AuthFailures failures_;
  ShedLog shed_log_;
  net::Endpoint endpoint_;
  std::atomic<std::size_t> connections_{0};
  std::unique_ptr<net::AddressCounts> per_address_;  ///< nullptr: no limit per address.
  std::vector<std::unique_ptr<net::Listener>> listeners_;
};

/// Returns the bytes that a client must move between two deadlines to meet `limits.body_rate`.
[[nodiscard]] std::size_t MinProgress(const Config::Limits& limits) noexcept;

}  // namespace tidegate
