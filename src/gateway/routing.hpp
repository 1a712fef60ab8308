// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/upstream.hpp"
#include "rules/config.hpp"
#include "rules/match_index.hpp"
#include "rules/problem.hpp"
#include "rules/request_view.hpp"
#include "telemetry/rule_slots.hpp"

namespace tidegate {

/// Where one kind of request goes.
struct Route {
  RouteSpec spec;
  std::size_t upstream = 0;      ///< Its place among the upstreams.
  std::uint32_t slot = 0;        ///< Of its counters.
  std::uint64_t body_bytes = 0;  ///< The longest body; 0: no limit.
  Micros response_timeout{0};
  EncodedSlashes encoded_slashes = EncodedSlashes::kReject;
  bool ignore_case = false;  ///< Of the rewrite's prefix.

  /// Returns the path that the upstream receives. `path` is the one to forward, `request` has its
  /// readings. Nothing if the prefix is in one of the readings and cannot be found in `path`:
  /// forwarding it unchanged would leave the part of the upstream that the route is for. Allocates
  /// from `memory` if the path changes.
  [[nodiscard]] std::optional<std::string_view> Rewrite(std::string_view path,
                                                        const RequestView& request,
                                                        std::pmr::memory_resource& memory) const;
};

/// Routes and upstreams of one configuration: immutable, swapped as a whole on reload.
class Routing {
 public:
  /// Upstreams that `before` has too, and that did not change, are taken over as they are. Nothing
  /// if a problem of severity kError was added. Waits for name servers, a little.
  [[nodiscard]] static std::shared_ptr<const Routing> Make(const Config& config,
                                                           const Routing* before, RuleSlots& routes,
                                                           RuleSlots& upstreams,
                                                           Problems& problems);
  Routing(const Routing&) = delete;
  Routing& operator=(const Routing&) = delete;

  /// The first route that matches; nullptr: none does.
  [[nodiscard]] const Route* Find(const RequestView& request) const;
  /// Returns false if the path contains an encoded slash that the request's route does not allow.
  /// `route` is nullptr if no route matches.
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
