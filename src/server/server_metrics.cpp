// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "gateway/gateway.hpp"
#include "gateway/routing.hpp"
#include "limiter/redis_metrics.hpp"
#include "server/server.hpp"
#include "telemetry/decision_metrics.hpp"
#include "telemetry/exposition.hpp"

namespace tidegate {
namespace {

using Families = std::vector<MetricFamily>;
constexpr auto kGauge = MetricFamily::Type::kGauge;

void Append(Families& families, Families more) {
  std::ranges::move(more, std::back_inserter(families));
}

Families StoreMetrics(const Server& server) {
  const StoreStats store = server.store_stats();
  const Config::Store& limits = server.config().store;
  return {
      Gauge("tidegate_store_entries", "Entries in use: keys, and ids of refunds.", store.tracked),
      Gauge("tidegate_store_max_entries", "The largest number of entries: store.max_keys.",
            limits.max_keys),
      Gauge("tidegate_store_list_bytes", "Bytes held by logs and leases.", store.list_bytes),
      Gauge("tidegate_store_max_list_bytes",
            "The most bytes that logs and leases may hold: store.max_list_bytes.",
            limits.max_list_bytes),
      Counter("tidegate_store_reclaimed_total",
              "Entries of fully recovered keys that were freed for new keys.", store.reclaimed),
      Counter("tidegate_store_overflowed_total",
              "Charges to a rule's overflow bucket, because the store was full.", store.overflowed),
      Counter("tidegate_store_repaired_total",
              "Stored times found impossibly far ahead and repaired.", store.repaired)};
}

Families ListenerMetrics(const Server& server) {
  constexpr std::string_view kShed[net::kShedReasons] = {"connections", "address", "descriptors"};
  constexpr std::string_view kClasses[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
  MetricFamily open{"tidegate_connections", "Open connections.", kGauge};
  MetricFamily accepted{"tidegate_connections_accepted_total", "Connections accepted."};
  MetricFamily shed{
      "tidegate_connections_shed_total",
      "Connections closed right after they were accepted, by the limit that they exceeded."};
  MetricFamily requests{"tidegate_requests_total", "Requests read."};
  MetricFamily refused{"tidegate_requests_refused_total",
                       "Requests that were malformed, too large or too slow."};
  MetricFamily responses{"tidegate_responses_total", "Responses by class of status."};
  for (const ListenerId id :
       {ListenerId::kApi, ListenerId::kAdmin, ListenerId::kResp, ListenerId::kGateway}) {
    const bool always = id == ListenerId::kApi || id == ListenerId::kAdmin;
    if (!always && server.group(id).off()) continue;
    const ListenerGroup::Stats stats = server.group(id).stats();
    const std::pair<std::string_view, std::string> label{"listener", server.group(id).name()};
    open.Add(stats.open, {label});
    accepted.Add(stats.accepted, {label});
    for (std::size_t i = 0; i < stats.shed.size(); ++i) {
      shed.Add(stats.shed[i], {label, {"reason", std::string(kShed[i])}});
    }
    requests.Add(stats.requests, {label});
    refused.Add(stats.refused, {label});
    if (!stats.responses) continue;
    // Interim responses are not counted. The other classes exist from the start, so that a rate
    // includes the first response.
    for (std::size_t i = 1; i < stats.responses->size(); ++i) {
      responses.Add((*stats.responses)[i], {label, {"code", std::string(kClasses[i])}});
    }
  }
  return {std::move(open),     std::move(accepted), std::move(shed),
          std::move(requests), std::move(refused),  std::move(responses)};
}

Families ConfigMetrics(const Server& server) {
  const ReloadStatus& reloads = server.reloads();
  MetricFamily results{"tidegate_config_reloads_total",
                       "Configurations read since the start, by result."};
  results.Add(reloads.applied.load(), {{"result", "applied"}});
  results.Add(reloads.refused.load(), {{"result", "refused"}});
  return {Gauge("tidegate_reactors", "Threads that serve connections.", server.workers().size()),
          Gauge("tidegate_rules", "Rules in force.",
                server.admin_context().snapshot().rules->rules().size()),
          std::move(results),
          Gauge("tidegate_config_applied_timestamp_seconds",
                "Time at which the configuration in force was applied.", reloads.applied_at.load()),
          Gauge("tidegate_config_last_reload_successful",
                "1 if the last configuration that was read was applied; 0 if it was refused and an "
                "older one is in force.",
                reloads.last_refused ? 0 : 1)};
}

/// Metrics of overrides, failed authentications and changes by operators.
Families AdminMetrics(const Server& server) {
  MetricFamily overrides{"tidegate_overrides", "Overrides in force on this node, by kind.", kGauge};
  const OverrideTable& table = *server.workers().front()->pipeline.overrides();
  for (int i = 0; i < kOverrideKinds; ++i) {
    const auto kind = static_cast<Override::Kind>(i);
    std::size_t count = 0;
    table.ForEach([&](const OverrideTable::Entry& entry) {
      if (entry.what.kind == kind && table.Left(entry) != Micros{0}) ++count;
    });
    overrides.Add(count, {{"kind", std::string(Name(kind))}});
  }
  // The age is the uptime if the overrides were never read.
  const auto age = server.admin_context().shared_overrides.age().value_or(
      std::chrono::floor<std::chrono::milliseconds>(server.uptime()));
  MetricFamily failures{"tidegate_auth_failures_total",
                        "Requests, commands and connections with missing or wrong credentials or "
                        "insufficient rights."};
  MetricFamily throttled{
      "tidegate_auth_throttled_total",
      "Wrong credentials from an address that had presented too many; the connection was closed."};
  for (const ListenerId id :
       {ListenerId::kApi, ListenerId::kResp, ListenerId::kAdmin, ListenerId::kGateway}) {
    const ListenerGroup& group = server.group(id);
    if (group.off()) continue;
    for (std::size_t i = 0; i < AuthFailure::kReasons; ++i) {
      const auto reason = static_cast<AuthFailure::Reason>(i);
      failures.Add(
          group.failures().count(reason),
          {{"listener", group.name()}, {"reason", std::string(AuthFailure::Name(reason))}});
    }
    throttled.Add(group.failures().throttled(), {{"listener", group.name()}});
  }
  MetricFamily changes{"tidegate_admin_changes_total", "Changes by operators on this node."};
  for (std::size_t i = 0; i < kAdminActions; ++i) {
    changes.Add(server.admin_context().counters[i].load(),
                {{"action", std::string(Name(static_cast<AdminAction>(i)))}});
  }
  return {std::move(overrides),
          Gauge("tidegate_overrides_age_seconds",
                "Time since this node last read the fleet's overrides.",
                static_cast<double>(age.count()) / 1e3),
          Counter("tidegate_overrides_restored_total",
                  "Number of times that this node restored overrides that Redis had lost.",
                  server.fleet() ? server.fleet()->restored() : 0),
          std::move(failures),
          std::move(throttled),
          std::move(changes)};
}

Families BufferMetrics(const net::BufferBudget& budget) {
  return {
      Gauge("tidegate_buffer_bytes",
            "Bytes of incomplete requests and unsent responses of all connections.", budget.used()),
      Gauge("tidegate_buffer_limit_bytes",
            "The most bytes that these buffers may hold: limits.buffer_bytes.", budget.limit()),
      Counter("tidegate_buffer_rejections_total",
              "Requests rejected, and connections closed, because limits.buffer_bytes "
              "had no room left.",
              budget.refused())};
}

}  // namespace

std::string MetricsText(const Server& server) {
  std::vector<const DecisionMetrics*> reactors;
  std::vector<const Gateway*> gateways;
  std::vector<const RedisStore*> stores;
  for (const auto& worker : server.workers()) {
    reactors.push_back(&worker->metrics);
    if (worker->redis_store) stores.push_back(worker->redis_store.get());
    if (worker->gateway) gateways.push_back(worker->gateway.get());
  }
  const SnapshotCompiler& compiler = server.compiler();
  Families all(1, {"tidegate_build_info", "The version of tidegate.", kGauge});
  all.front().Add(1, {{"version", server.version()}});
  Append(all, DecisionFamilies(reactors, compiler.rule_slots().Names()));
  Append(all, StoreMetrics(server));
  Append(all, ListenerMetrics(server));
  Append(all, ConfigMetrics(server));
  Append(all, FailureMetrics(stores));
  Append(all, AdminMetrics(server));
  Append(all, BufferMetrics(server.budget()));
  if (server.fleet() != nullptr) Append(all, RedisMetrics(stores, server.fleet()->fleet()));
  if (!gateways.empty()) {
    Append(all, GatewayMetrics(
                    gateways, compiler.route_slots().Names(), compiler.upstream_slots().Names(),
                    server.admin_context().snapshot().routes->upstreams(), server.access_log()));
  }
  Append(all, ProcessMetrics());
  return Expose(all);
}

}  // namespace tidegate
