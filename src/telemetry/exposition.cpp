// SPDX-License-Identifier: Apache-2.0
#include "telemetry/exposition.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace tidegate {
namespace {

using Type = MetricFamily::Type;

struct Label {
  std::string_view name;
  std::string_view value;
};

/// Writes the text format, family by family.
class Writer {
 public:
  /// What follows belongs to this family.
  void Family(std::string_view name, std::string_view help, Type type) {
    name_ = name;
    text_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name);
    text_ += type == Type::kCounter ? " counter\n"
             : type == Type::kGauge ? " gauge\n"
                                    : " histogram\n";
  }

  void Value(double value, std::initializer_list<Label> labels = {}) {
    Value(value, std::span(labels), {});
  }
  void Value(double value, std::span<const Label> labels, std::string_view suffix) {
    text_.append(name_).append(suffix);
    char before = '{';
    for (const Label& label : labels) {
      text_ += std::exchange(before, ',');
      text_.append(label.name).append("=\"");
      AppendEscaped(label.value);
      text_ += '"';
    }
    if (!labels.empty()) text_ += '}';
    char number[32];
    const auto end = std::to_chars(number, number + sizeof number, value).ptr;
    text_.append(" ").append(number, end).append("\n");
  }

  void Counter(std::string_view name, std::string_view help, double value) {
    Family(name, help, Type::kCounter);
    Value(value);
  }
  void Gauge(std::string_view name, std::string_view help, double value) {
    Family(name, help, Type::kGauge);
    Value(value);
  }

  [[nodiscard]] std::string Take() { return std::move(text_); }

 private:
  void AppendEscaped(std::string_view value) {
    for (const char c : value) {
      if (c == '\n') {
        text_ += "\\n";
        continue;
      }
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
  }

  std::string text_;
  std::string_view name_;
};

void AddDecisions(Writer& out, const Snapshot& snapshot) {
  out.Family("tidegate_decisions_total", "Decisions by rule, outcome and the rung that answered.",
             Type::kCounter);
  constexpr std::size_t kCells = DecisionCounters::kOutcomes * DecisionCounters::kRungs;
  for (std::uint32_t slot = 0; slot < snapshot.rule_names.size(); ++slot) {
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      std::uint64_t sum = 0;
      for (const DecisionCounters* const counters : snapshot.decisions) {
        if (const auto* const row = counters->Find(slot)) {
          sum += (*row)[cell].load(std::memory_order_relaxed);
        }
      }
      if (sum == 0) continue;
      const std::size_t outcome = cell / DecisionCounters::kRungs;
      const auto rung = static_cast<Rung>(cell % DecisionCounters::kRungs);
      out.Value(static_cast<double>(sum),
                {{"rule", snapshot.rule_names[slot]},
                 {"outcome", DecisionCounters::OutcomeName(outcome)},
                 {"rung", outcome < DecisionCounters::kBanned ? Name(rung) : "none"}});
    }
  }
}

void AddStore(Writer& out, const StoreStats& store) {
  out.Gauge("tidegate_store_entries", "Entries in use: keys, and ids of refunds.",
            static_cast<double>(store.tracked));
  out.Gauge("tidegate_store_list_bytes", "Bytes held by logs and leases.",
            static_cast<double>(store.list_bytes));
  out.Counter("tidegate_store_reclaimed_total",
              "Entries of fully recovered keys given to new ones.",
              static_cast<double>(store.reclaimed));
  out.Counter("tidegate_store_overflowed_total",
              "Charges that fell to a rule's overflow bucket, since the store was full.",
              static_cast<double>(store.overflowed));
  out.Counter("tidegate_store_repaired_total",
              "Stored times found impossibly far ahead and repaired.",
              static_cast<double>(store.repaired));
}

void AddDoors(Writer& out, const Snapshot& snapshot) {
  using Member = std::uint64_t Snapshot::Door::*;
  const auto add = [&](std::string_view name, std::string_view help, Type type, Member member) {
    out.Family(name, help, type);
    for (const auto& door : snapshot.doors) {
      out.Value(static_cast<double>(door.*member), {{"door", door.name}});
    }
  };
  add("tidegate_connections", "Open connections.", Type::kGauge, &Snapshot::Door::open);
  add("tidegate_connections_accepted_total", "Connections accepted.", Type::kCounter,
      &Snapshot::Door::accepted);
  add("tidegate_connections_shed_total", "Connections refused beyond the limit.", Type::kCounter,
      &Snapshot::Door::shed);
  add("tidegate_requests_total", "Requests read.", Type::kCounter, &Snapshot::Door::requests);
  add("tidegate_requests_refused_total", "Requests that were no HTTP, too large or too slow.",
      Type::kCounter, &Snapshot::Door::refused);
}

void AddMore(Writer& out, const MetricFamily& family) {
  out.Family(family.name, family.help, family.type);
  std::vector<Label> labels;
  for (const MetricFamily::Value& value : family.values) {
    labels.clear();
    for (const auto& [name, text] : value.labels) labels.push_back({name, text});
    out.Value(value.value, labels, value.suffix);
  }
}

double OpenDescriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int count = -3;  // Itself and the two dots.
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

void AddProcess(Writer& out) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  out.Counter("process_cpu_seconds_total", "User and system CPU time.",
              seconds(usage.ru_utime) + seconds(usage.ru_stime));
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  out.Gauge("process_resident_memory_bytes", "Resident memory.",
            static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  out.Gauge("process_open_fds", "Open descriptors.", OpenDescriptors());
}

}  // namespace

std::string Expose(const Snapshot& snapshot) {
  Writer out;
  out.Family("tidegate_build_info", "Which tidegate this is.", Type::kGauge);
  out.Value(1, {{"version", snapshot.version}});
  AddDecisions(out, snapshot);
  AddStore(out, snapshot.store);
  AddDoors(out, snapshot);
  out.Gauge("tidegate_rules", "Rules in force.", static_cast<double>(snapshot.rules));
  out.Family("tidegate_config_reloads_total", "Configurations read since the start, by result.",
             Type::kCounter);
  out.Value(static_cast<double>(snapshot.reloads), {{"result", "applied"}});
  out.Value(static_cast<double>(snapshot.failed_reloads), {{"result", "refused"}});
  out.Gauge("tidegate_config_applied_timestamp_seconds",
            "When the configuration in force was applied.", snapshot.last_reload_seconds);
  for (const MetricFamily& family : snapshot.more) AddMore(out, family);
  AddProcess(out);
  return out.Take();
}

}  // namespace tidegate
