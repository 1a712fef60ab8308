// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "decision/snapshot.hpp"
#include "frontends/auth_failures.hpp"
#include "net/endpoint.hpp"
#include "net/listener.hpp"
#include "rules/listen_spec.hpp"
#include "server/shed_log.hpp"
#include "telemetry/exposition.hpp"

namespace tidegate {

/// The listeners of one frontend, one on each of its reactors, and the state that they share.
class ListenerGroup {
 public:
  /// `throttle` must outlive the group.
  ListenerGroup(ListenerId id, std::string name, const ListenSpec& spec, FailureThrottle& throttle)
      : id_(id), name_(std::move(name)), spec_(spec), failures_(name_, throttle) {}

  /// Limits of the group that differ between listeners, and where its events go.
  struct Guards {
    std::unique_ptr<net::AddressCounts> per_address;  ///< nullptr: no limit per address.
    std::unique_ptr<ShedLog> shed_log;
    /// Called on a reactor's thread when half of many connections of a listener have ended.
    std::function<void()> on_subsided;
  };

  [[nodiscard]] bool off() const noexcept { return spec_.off(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Returns the address of the listeners, with the real port if port 0 was configured.
  [[nodiscard]] const net::Endpoint& endpoint() const noexcept { return endpoint_; }

  using MakeListener = std::function<std::unique_ptr<net::Listener>(
      std::size_t reactor, net::Descriptor socket, const net::Listener::Options& options)>;
  /// Listens on the first `reactors` reactors, but accepts nothing before Start. Does nothing if
  /// the group is off.
  [[nodiscard]] Result<void> Open(std::size_t reactors, net::Listener::Options options,
                                  Guards guards, const MakeListener& make);
  /// Uses the snapshot's TLS and trusted proxies for new connections on one reactor, on its thread.
  void Use(const net::Reactor& reactor, const Snapshot& snapshot);

  void Start();
  /// Stops accepting; each of listeners() calls `drained` once, on its thread.
  void Drain(const std::function<void()>& drained);
  [[nodiscard]] const std::vector<std::unique_ptr<net::Listener>>& listeners() const noexcept {
    return listeners_;
  }
  /// Closes all connections on one reactor, on its thread.
  void CloseAll(const net::Reactor& reactor);
  [[nodiscard]] MetricsReport::Door Stats() const;
  [[nodiscard]] AuthFailures& failures() noexcept { return failures_; }
  [[nodiscard]] const AuthFailures& failures() const noexcept { return failures_; }

 private:
  const ListenerId id_;
  const std::string name_;
  const ListenSpec spec_;
  AuthFailures failures_;
  net::Endpoint endpoint_;
  std::atomic<std::size_t> connections_{0};
  Guards guards_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
};

}  // namespace tidegate
