// SPDX-License-Identifier: Apache-2.0
#include "telemetry/exposition.hpp"

#include <dirent.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <utility>

namespace tidegate {
namespace {

using Families = std::vector<prometheus::MetricFamily>;
using Labels = std::vector<prometheus::ClientMetric::Label>;

prometheus::MetricFamily& Add(Families& families, std::string name, std::string help,
                              prometheus::MetricType type) {
  families.push_back({std::move(name), std::move(help), type, {}});
  return families.back();
}

void AddValue(prometheus::MetricFamily& family, double value, Labels labels = {}) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  if (family.type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
}

void AddCounter(Families& families, std::string name, std::string help, double value) {
  AddValue(Add(families, std::move(name), std::move(help), prometheus::MetricType::Counter), value);
}

void AddGauge(Families& families, std::string name, std::string help, double value) {
  AddValue(Add(families, std::move(name), std::move(help), prometheus::MetricType::Gauge), value);
}

void AddDecisions(Families& families, const Snapshot& snapshot) {
  auto& family = Add(families, "tidegate_decisions_total",
                     "Decisions by rule, outcome and the rung that answered.",
                     prometheus::MetricType::Counter);
  for (std::uint32_t slot = 0; slot < snapshot.rule_names.size(); ++slot) {
    for (std::size_t cell = 0; cell < DecisionCounters::kOutcomes * DecisionCounters::kRungs;
         ++cell) {
      std::uint64_t sum = 0;
      for (const DecisionCounters* const counters : snapshot.decisions) {
        if (const auto* const row = counters->Find(slot)) {
          sum += (*row)[cell].load(std::memory_order_relaxed);
        }
      }
      if (sum == 0) continue;
      const auto rung = static_cast<Rung>(cell % DecisionCounters::kRungs);
      AddValue(
          family, static_cast<double>(sum),
          {{"rule", snapshot.rule_names[slot]},
           {"outcome", std::string(DecisionCounters::OutcomeName(cell / DecisionCounters::kRungs))},
           {"rung", std::string(Name(rung))}});
    }
  }
}

void AddStore(Families& families, const StoreStats& store) {
  AddGauge(families, "tidegate_store_entries", "Entries in use: keys, and ids of refunds.",
           static_cast<double>(store.tracked));
  AddGauge(families, "tidegate_store_list_bytes", "Bytes held by logs and leases.",
           static_cast<double>(store.list_bytes));
  AddCounter(families, "tidegate_store_reclaimed_total",
             "Entries of fully recovered keys given to new ones.",
             static_cast<double>(store.reclaimed));
  AddCounter(families, "tidegate_store_overflowed_total",
             "Charges that fell to a rule's overflow bucket, since the store was full.",
             static_cast<double>(store.overflowed));
  AddCounter(families, "tidegate_store_repaired_total",
             "Stored times found impossibly far ahead and repaired.",
             static_cast<double>(store.repaired));
}

void AddDoors(Families& families, const Snapshot& snapshot) {
  using Member = std::uint64_t Snapshot::Door::*;
  const auto add = [&](std::string name, std::string help, prometheus::MetricType type,
                       Member member) {
    auto& family = Add(families, std::move(name), std::move(help), type);
    for (const auto& door : snapshot.doors) {
      AddValue(family, static_cast<double>(door.*member), {{"door", door.name}});
    }
  };
  using prometheus::MetricType;
  add("tidegate_connections", "Open connections.", MetricType::Gauge, &Snapshot::Door::open);
  add("tidegate_connections_accepted_total", "Connections accepted.", MetricType::Counter,
      &Snapshot::Door::accepted);
  add("tidegate_connections_shed_total", "Connections refused beyond the limit.",
      MetricType::Counter, &Snapshot::Door::shed);
  add("tidegate_requests_total", "Requests read.", MetricType::Counter, &Snapshot::Door::requests);
  add("tidegate_requests_refused_total", "Requests that were no HTTP, too large or too slow.",
      MetricType::Counter, &Snapshot::Door::refused);
}

double OpenDescriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int count = -3;  // Itself and the two dots.
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

void AddProcess(Families& families) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  AddCounter(families, "process_cpu_seconds_total", "User and system CPU time.",
             seconds(usage.ru_utime) + seconds(usage.ru_stime));
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  AddGauge(families, "process_resident_memory_bytes", "Resident memory.",
           static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  AddGauge(families, "process_open_fds", "Open descriptors.", OpenDescriptors());
}

}  // namespace

std::string Expose(const Snapshot& snapshot) {
  Families families;
  AddValue(Add(families, "tidegate_build_info", "Which tidegate this is.",
               prometheus::MetricType::Gauge),
           1, {{"version", snapshot.version}});
  AddDecisions(families, snapshot);
  AddStore(families, snapshot.store);
  AddDoors(families, snapshot);
  AddGauge(families, "tidegate_rules", "Rules in force.", static_cast<double>(snapshot.rules));
  auto& reloads =
      Add(families, "tidegate_config_reloads_total",
          "Configurations read since the start, by result.", prometheus::MetricType::Counter);
  AddValue(reloads, static_cast<double>(snapshot.reloads), {{"result", "applied"}});
  AddValue(reloads, static_cast<double>(snapshot.failed_reloads), {{"result", "refused"}});
  AddGauge(families, "tidegate_config_applied_timestamp_seconds",
           "When the configuration in force was applied.", snapshot.last_reload_seconds);
  AddProcess(families);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace tidegate
