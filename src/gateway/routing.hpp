// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"
#include "config/config.hpp"
#include "config/gateway_spec.hpp"
#include "identity/request_view.hpp"
#include "net/http1_syntax.hpp"
#include "net/resolver.hpp"
#include "net/tls.hpp"
#include "rules/match_index.hpp"
#include "telemetry/slot_table.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// One address of an upstream and its state, shared by all reactors.
struct Member {
  using Clock = std::chrono::steady_clock;

  net::SocketAddress address;
  std::string text;       ///< `10.0.0.7:8080`, for logs and metrics.
  std::string host;       ///< The host of the target: a name or an address.
  std::string authority;  ///< The Host field for the target: `api.internal:8080`.
  bool tls = false;
  int weight = 1;

  std::atomic<std::uint32_t> active{0};     ///< Requests in progress.
  std::atomic<bool> healthy{true};          ///< The result of health checks; without any, true.
  std::atomic<std::uint32_t> failures{0};   ///< Consecutive failures.
  std::atomic<std::uint32_t> ejections{0};  ///< Ejections since the last success.
  /// The end of the ejection on the steady clock, in nanoseconds; 0: not ejected.
  std::atomic<std::int64_t> ejected_until{0};

  [[nodiscard]] bool Ejected(Clock::time_point now) const noexcept {
    const std::int64_t until = ejected_until.load(std::memory_order_relaxed);
    return until != 0 && now.time_since_epoch() < std::chrono::nanoseconds{until};
  }
  [[nodiscard]] bool Up(Clock::time_point now) const noexcept {
    return healthy.load(std::memory_order_relaxed) && !Ejected(now);
  }
};

using Members = std::vector<std::shared_ptr<Member>>;

/// The servers behind one name, for all reactors. Thread-safe. An upstream whose settings do not
/// change survives reloads.
class Upstream {
 public:
  /// Returns an upstream whose numeric addresses are members at once; names become members with
  /// SetAddresses. Members that are also in `before`, the previous upstream of that name, keep
  /// their state.
  [[nodiscard]] static Result<std::shared_ptr<Upstream>> Make(const UpstreamSpec& spec,
                                                              const Upstream* before);

  [[nodiscard]] const UpstreamSpec& spec() const noexcept { return spec_; }
  /// Returns the line ends that are accepted in responses.
  [[nodiscard]] net::http1::LineEnd line_end() const noexcept {
    return spec_.accept_bare_lf ? net::http1::LineEnd::kCrlfOrLf : net::http1::LineEnd::kCrlf;
  }
  [[nodiscard]] const net::TlsClient* tls() const noexcept { return tls_.get(); }
  /// Returns the name for which the certificate of `member` must be valid.
  [[nodiscard]] const std::string& ServerName(const Member& member) const noexcept {
    return spec_.tls.server_name.empty() ? member.host : spec_.tls.server_name;
  }

  /// Increases whenever members are added or removed.
  [[nodiscard]] std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::shared_ptr<const Members> members() const {
    const std::lock_guard lock(mutex_);
    return members_;
  }

  /// Returns the indices in spec().targets of targets that are names.
  [[nodiscard]] const std::vector<std::size_t>& names() const noexcept { return names_; }
  /// Sets the addresses of a name. An empty list changes nothing.
  void SetAddresses(std::size_t target, const std::vector<net::SocketAddress>& addresses);

 private:
  explicit Upstream(const UpstreamSpec& spec) : spec_(spec) {}
  /// Selects what members that exist already keep: everything, or everything but their health.
  enum class Keep : std::uint8_t { kMembers, kRecord };
  void Rebuild(const Members* before, Keep keep);

  const UpstreamSpec spec_;
  std::shared_ptr<const net::TlsClient> tls_;
  std::vector<std::size_t> names_;
  mutable std::mutex mutex_;
  /// Indexed by target. Guarded by mutex_.
  std::vector<std::vector<net::SocketAddress>> addresses_;
  std::shared_ptr<const Members> members_;  ///< Guarded by mutex_.
  std::atomic<std::uint64_t> version_{0};
};

/// All upstreams of a configuration, in its order.
using Upstreams = std::vector<std::shared_ptr<Upstream>>;

/// Looks up all names of `upstreams` at once. Blocks for at most `patience`, so reactors must not
/// call it.
void ResolveNames(const Upstreams& upstreams, std::chrono::milliseconds patience);

/// A route: where requests that match it are sent.
struct Route {
  RouteSpec spec;
  std::size_t upstream = 0;      ///< The index of its upstream.
  std::uint32_t slot = 0;        ///< The slot of its counters.
  std::uint64_t body_bytes = 0;  ///< The longest body; 0: no limit.
  Micros response_timeout{0};
  EncodedSlashes encoded_slashes = EncodedSlashes::kReject;
  bool ignore_case = false;  ///< The case of the rewrite's prefix is ignored.

  /// Returns the path that the upstream receives, allocated from `memory` if it changes. `path` is
  /// the path to forward, and `request` has its readings: the paths that lenient servers may read
  /// in it. Returns nothing if a reading begins with the prefix but `path` does not, and the
  /// segments are ambiguous (`//` or an encoded slash): if the path were forwarded unchanged, it
  /// would leave the part of the upstream that the route is for.
  [[nodiscard]] std::optional<std::string_view> Rewrite(std::string_view path,
                                                        const RequestView& request,
                                                        std::pmr::memory_resource& memory) const;
};

/// Routes and upstreams of one configuration: immutable, swapped as a whole on reload.
class Routing {
 public:
  /// Returns the routes and upstreams of `config`; nullptr if it added a problem of severity
  /// kError. Keeps the upstreams of `before` that did not change. Waits up to two seconds for name
  /// servers.
  [[nodiscard]] static std::shared_ptr<const Routing> Make(const Config& config,
                                                           const Routing* before, RuleSlots& routes,
                                                           RuleSlots& upstreams,
                                                           Problems& problems);
  Routing(const Routing&) = delete;
  Routing& operator=(const Routing&) = delete;

  /// Returns the first route that matches; nullptr if there is none.
  [[nodiscard]] const Route* Find(const RequestView& request) const;
  /// Returns false if the path has an encoded slash that `route` (nullptr: none) does not allow.
  [[nodiscard]] bool AllowsPathOf(const RequestView& request, const Route* route) const noexcept {
    return !request.has_encoded_separator ||
           (route != nullptr && route->encoded_slashes == EncodedSlashes::kMatch);
  }
  [[nodiscard]] const std::vector<Route>& routes() const noexcept { return routes_; }
  [[nodiscard]] const Upstreams& upstreams() const noexcept { return upstreams_; }
  [[nodiscard]] std::uint32_t upstream_slot(std::size_t i) const noexcept { return slots_[i]; }
  [[nodiscard]] const GatewaySpec& gateway() const noexcept { return gateway_; }

 private:
  explicit Routing(const Config& config);

  const GatewaySpec gateway_;
  std::vector<Route> routes_;
  Upstreams upstreams_;
  std::vector<std::uint32_t> slots_;
  MatchIndex index_;
};

}  // namespace tidegate
