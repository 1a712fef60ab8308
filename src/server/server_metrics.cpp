// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "gateway/gateway_metrics.hpp"
#include "gateway/routing.hpp"
#include "limiter/redis_metrics.hpp"
#include "server/server.hpp"
#include "server/server_report.hpp"
#include "telemetry/exposition.hpp"
#include "telemetry/tally_metrics.hpp"

namespace tidegate {
namespace {

void Append(std::vector<MetricFamily>& families, std::vector<MetricFamily> more) {
  std::ranges::move(more, std::back_inserter(families));
}

/// Metrics of overrides, failed authentications and changes by operators.
std::vector<MetricFamily> AdminMetrics(const Server& server) {
  using Type = MetricFamily::Type;
  MetricFamily overrides{
      "tidegate_overrides", "Overrides that this node knows, by kind.", Type::kGauge, {}};
  const OverrideTable& table = *server.workers().front()->pipeline.overrides();
  for (int i = 0; i < kOverrideKinds; ++i) {
    const auto kind = static_cast<Override::Kind>(i);
    std::size_t count = 0;
    table.ForEach([&](const OverrideTable::Entry& entry) {
      const auto left = table.Left(entry);
      if (entry.what.kind == kind && (!left || *left > Micros{0})) ++count;
    });
    overrides.values.push_back({static_cast<double>(count), {{"kind", std::string(Name(kind))}}});
  }
  // The uptime, if the overrides were never read.
  const auto age = server.admin_context().fleet_register.age().value_or(
      std::chrono::floor<std::chrono::milliseconds>(server.uptime()));
  MetricFamily old{"tidegate_overrides_age_seconds",
                   "Time since this node last knew that its overrides are the fleet's.",
                   Type::kGauge,
                   {{static_cast<double>(age.count()) / 1e3}}};
  MetricFamily restored{"tidegate_overrides_restored_total",
                        "Times that this node restored overrides that Redis had lost.",
                        Type::kCounter,
                        {{server.fleet() ? static_cast<double>(server.fleet()->restored()) : 0.0}}};
  MetricFamily failures{"tidegate_auth_failures_total",
                        "Requests, commands and connections with missing or wrong credentials or "
                        "insufficient rights.",
                        Type::kCounter,
                        {}};
  MetricFamily throttled{
      "tidegate_auth_throttled_total",
      "Wrong credentials from an address that had presented too many; the connection was closed.",
      Type::kCounter,
      {}};
  for (const ListenerId id :
       {ListenerId::kApi, ListenerId::kResp, ListenerId::kAdmin, ListenerId::kGateway}) {
    const ListenerGroup& group = server.group(id);
    if (group.off()) continue;
    for (std::size_t i = 0; i < AuthFailure::kReasons; ++i) {
      const auto reason = static_cast<AuthFailure::Reason>(i);
      failures.values.push_back(
          {static_cast<double>(group.failures().count(reason)),
           {{"door", group.name()}, {"reason", std::string(AuthFailure::Name(reason))}}});
    }
    throttled.values.push_back(
        {static_cast<double>(group.failures().throttled()), {{"door", group.name()}}});
  }
  MetricFamily changes{
      "tidegate_admin_changes_total", "Changes by operators on this node.", Type::kCounter, {}};
  for (std::size_t i = 0; i < kAdminActions; ++i) {
    changes.values.push_back({static_cast<double>(server.admin_context().counters[i].load()),
                              {{"action", std::string(Name(static_cast<AdminAction>(i)))}}});
  }
  return {std::move(overrides), std::move(old),       std::move(restored),
          std::move(failures),  std::move(throttled), std::move(changes)};
}

/// Metrics of the bytes that incomplete requests hold.
std::vector<MetricFamily> BufferMetrics(const net::BufferBudget& budget) {
  using Type = MetricFamily::Type;
  return {
      {"tidegate_buffer_bytes",
       "Bytes of incomplete requests and unsent responses of all connections.",
       Type::kGauge,
       {{static_cast<double>(budget.used())}}},
      {"tidegate_buffer_limit_bytes",
       "limits.buffer_bytes.",
       Type::kGauge,
       {{static_cast<double>(budget.limit())}}},
      {"tidegate_buffer_rejections_total",
       "Requests rejected, and connections closed, because limits.buffer_bytes had no room left.",
       Type::kCounter,
       {{static_cast<double>(budget.refused())}}}};
}

}  // namespace

std::string MetricsText(const Server& server) {
  std::vector<const DecisionCounters*> counters;
  std::vector<const Tally*> tallies;
  std::vector<const Gateway*> gateways;
  std::vector<const Guard*> guards;
  for (const auto& worker : server.workers()) {
    if (worker->guard) guards.push_back(worker->guard.get());
    counters.push_back(&worker->metrics.counters());
    tallies.push_back(&worker->metrics);
    if (worker->gateway) gateways.push_back(worker->gateway.get());
  }
  const SnapshotCompiler& compiler = server.compiler();
  const Snapshot& snapshot = server.admin_context().snapshot();
  std::vector<MetricsReport::Door> doors;
  for (const ListenerId id :
       {ListenerId::kApi, ListenerId::kAdmin, ListenerId::kResp, ListenerId::kGateway}) {
    const ListenerGroup& group = server.group(id);
    const bool always = id == ListenerId::kApi || id == ListenerId::kAdmin;
    if (always || !group.off()) doors.push_back(group.Stats());
  }
  std::vector<MetricFamily> more = TallyMetrics(tallies);
  Append(more, FailureMetrics(guards));
  Append(more, AdminMetrics(server));
  Append(more, BufferMetrics(server.budget()));
  if (server.fleet() != nullptr) Append(more, RedisMetrics(guards, server.fleet()->fleet()));
  if (!gateways.empty()) {
    Append(more, GatewayMetrics(gateways, compiler.route_slots().Names(),
                                compiler.upstream_slots().Names(), snapshot.routes->upstreams(),
                                server.access_log()));
  }
  const ReloadStatus& reloads = server.reloads();
  return Expose({.version = server.version(),
                 .rule_names = compiler.rule_slots().Names(),
                 .decisions = counters,
                 .store = server.store_stats(),
                 .store_max_entries = server.config().store.max_keys,
                 .store_max_list_bytes = server.config().store.max_list_bytes,
                 .reactors = server.workers().size(),
                 .rules = snapshot.rules->rules().size(),
                 .reloads = reloads.applied,
                 .failed_reloads = reloads.refused,
                 .last_reload_seconds = static_cast<double>(reloads.applied_at.load()),
                 .last_reload_refused = reloads.last_refused,
                 .doors = std::move(doors),
                 .more = std::move(more)});
}

}  // namespace tidegate
