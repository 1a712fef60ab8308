// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <utility>

#include "gateway/gateway.hpp"

namespace tidegate {
namespace {

using Type = MetricFamily::Type;
using Gateways = std::span<const Gateway* const>;

template <class Table>
std::uint64_t Sum(Gateways gateways, Table GatewayCounters::*table, std::size_t slot,
                  std::size_t column) {
  std::uint64_t sum = 0;
  for (const Gateway* const gateway : gateways) {
    sum += (gateway->counters().*table).Get(static_cast<std::uint32_t>(slot), column);
  }
  return sum;
}

/// Adds the counts of `table` that are not zero, by route and by `label`, whose values are `names`.
template <class Table, std::size_t N>
MetricFamily ByRoute(MetricFamily family, Gateways gateways, Table GatewayCounters::*table,
                     const std::vector<std::string>& routes, std::string_view label,
                     const std::array<std::string_view, N>& names) {
  for (std::size_t slot = 0; slot < routes.size(); ++slot) {
    for (std::size_t i = 0; i < N; ++i) {
      const auto count = Sum(gateways, table, slot, i);
      if (count == 0) continue;
      family.Add(count, {{"route", routes[slot]}, {label, std::string(names[i])}});
    }
  }
  return family;
}

struct UpstreamColumn {
  std::string_view name;
  std::string_view help;
  GatewayCounters::Column column;
};
constexpr std::array<UpstreamColumn, 9> kColumns = {{
    {"tidegate_upstream_attempts_total", "Requests sent to an upstream, retries included.",
     GatewayCounters::kAttempts},
    {"tidegate_upstream_connect_failures_total", "Attempts that failed to connect to the target.",
     GatewayCounters::kConnectFailures},
    {"tidegate_upstream_resets_total", "Connections that ended before the response was complete.",
     GatewayCounters::kResets},
    {"tidegate_upstream_timeouts_total", "Attempts without a response in time.",
     GatewayCounters::kTimeouts},
    {"tidegate_upstream_bad_answers_total", "Responses that are not valid HTTP.",
     GatewayCounters::kBadAnswers},
    {"tidegate_upstream_retries_total", "Retries: attempts after the first.",
     GatewayCounters::kRetries},
    {"tidegate_upstream_ejections_total", "Targets ejected after consecutive failures.",
     GatewayCounters::kEjections},
    {"tidegate_upstream_full_total",
     "Requests refused because all targets had max_requests in flight.", GatewayCounters::kFull},
    {"tidegate_upstream_down_total", "Requests refused because no target was up.",
     GatewayCounters::kDown},
}};

MetricFamily Times(Gateways gateways, const std::vector<std::string>& upstreams) {
  MetricFamily family{"tidegate_upstream_response_seconds",
                      "Time from sending a request to the head of its response.", Type::kHistogram};
  for (std::size_t slot = 1; slot < upstreams.size(); ++slot) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i <= GatewayCounters::kMillis.size(); ++i) {
      count += Sum(gateways, &GatewayCounters::upstreams, slot, GatewayCounters::kBuckets + i);
      std::string le = "+Inf";
      if (i < GatewayCounters::kMillis.size()) {
        const std::int64_t millis = GatewayCounters::kMillis[i];
        std::string part = std::to_string(millis % 1000);
        part.insert(0, 3 - part.size(), '0');
        le = std::to_string(millis / 1000) + "." + part;
      }
      family.Add(count, {{"upstream", upstreams[slot]}, {"le", std::move(le)}}, "_bucket");
    }
    const auto micros = Sum(gateways, &GatewayCounters::upstreams, slot, GatewayCounters::kMicros);
    family.Add(static_cast<double>(micros) / 1e6, {{"upstream", upstreams[slot]}}, "_sum");
    family.Add(count, {{"upstream", upstreams[slot]}}, "_count");
  }
  return family;
}

void AddMembers(const Upstreams& upstreams, std::vector<MetricFamily>& families) {
  MetricFamily up{"tidegate_upstream_target_up",
                  "1 if the target gets requests; 0 if it is unhealthy or ejected.",
                  Type::kGauge,
                  {}};
  MetricFamily active{
      "tidegate_upstream_target_requests", "Requests in flight at the target.", Type::kGauge, {}};
  const auto now = Member::Clock::now();
  for (const auto& upstream : upstreams) {
    const auto members = upstream->members();
    // Two names, or http and https, may resolve to one address, which gets one series.
    struct Target {
      bool up = false;
      std::uint64_t active = 0;
    };
    std::map<std::string_view, Target> targets;
    for (const auto& member : *members) {
      Target& target = targets[member->text];
      target.up |= member->Up(now);
      target.active += member->active.load();
    }
    for (const auto& [text, target] : targets) {
      const MetricFamily::Labels labels = {{"upstream", upstream->spec().name},
                                           {"target", std::string(text)}};
      up.Add(target.up, labels);
      active.Add(target.active, labels);
    }
  }
  families.push_back(std::move(up));
  families.push_back(std::move(active));
}

}  // namespace

std::vector<MetricFamily> GatewayMetrics(Gateways gateways, const std::vector<std::string>& routes,
                                         const std::vector<std::string>& upstreams,
                                         const Upstreams& members, const AccessLog* log) {
  static constexpr std::array<std::string_view, GatewayCounters::kClasses> kClasses = {
      "1xx", "2xx", "3xx", "4xx", "5xx", "other"};
  std::vector<MetricFamily> families = {
      ByRoute({"tidegate_gateway_requests_total", "Requests by route and outcome."}, gateways,
              &GatewayCounters::outcomes, routes, "outcome", kExchangeOutcomeNames),
      ByRoute({"tidegate_gateway_responses_total", "Responses by route and class of status."},
              gateways, &GatewayCounters::statuses, routes, "code", kClasses)};
  for (const UpstreamColumn& column : kColumns) {
    MetricFamily& family = families.emplace_back(column.name, column.help);
    for (std::size_t slot = 1; slot < upstreams.size(); ++slot) {
      family.Add(Sum(gateways, &GatewayCounters::upstreams, slot, column.column),
                 {{"upstream", upstreams[slot]}});
    }
  }
  families.push_back(Times(gateways, upstreams));
  AddMembers(members, families);
  if (log != nullptr) {
    families.push_back(Counter("tidegate_access_log_dropped_bytes_total",
                               "Bytes of access log lines that could not be written in time.",
                               log->dropped_bytes()));
  }
  return families;
}

}  // namespace tidegate
