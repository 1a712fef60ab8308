// SPDX-License-Identifier: Apache-2.0
#include "telemetry/exposition.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include "telemetry/process_metrics.hpp"

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
    text_ += ' ';
    AppendNumber(value);
    text_ += '\n';
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
  void AppendNumber(double value) {
    if (std::isinf(value)) {  // As the format spells it.
      text_ += value > 0 ? "+Inf" : "-Inf";
      return;
    }
    char number[32];
    text_.append(number, std::to_chars(number, number + sizeof number, value).ptr);
  }
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

void AddDecisions(Writer& out, const MetricsReport& report) {
  out.Family("tidegate_decisions_total", "Decisions by rule, outcome and who decided.",
             Type::kCounter);
  using Outcome = DecisionCounters::Outcome;
  for (std::uint32_t slot = 0; slot < report.rule_names.size(); ++slot) {
    std::map<std::pair<Outcome, DecidedBy>, std::uint64_t> sums;
    for (const DecisionCounters* const counters : report.decisions) {
      counters->Each(slot, [&](Outcome outcome, DecidedBy decided_by, std::uint64_t count) {
        sums[{outcome, decided_by}] += count;
      });
    }
    for (const auto& [cell, sum] : sums) {
      const auto [outcome, decided_by] = cell;
      out.Value(static_cast<double>(sum), {{"rule", report.rule_names[slot]},
                                           {"outcome", DecisionCounters::Name(outcome)},
                                           {"decided_by", Name(decided_by)}});
    }
  }
}

void AddStore(Writer& out, const MetricsReport& report) {
  const StoreStats& store = report.store;
  out.Gauge("tidegate_store_entries", "Entries in use: keys, and ids of refunds.",
            static_cast<double>(store.tracked));
  out.Gauge("tidegate_store_max_entries", "As many entries as there may be: store.max_keys.",
            static_cast<double>(report.store_max_entries));
  out.Gauge("tidegate_store_list_bytes", "Bytes held by logs and leases.",
            static_cast<double>(store.list_bytes));
  out.Gauge("tidegate_store_max_list_bytes", "As many as there may be: store.max_list_bytes.",
            static_cast<double>(report.store_max_list_bytes));
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

void AddDoors(Writer& out, const MetricsReport& report) {
  using Member = std::uint64_t MetricsReport::Door::*;
  const auto add = [&](std::string_view name, std::string_view help, Type type, Member member) {
    out.Family(name, help, type);
    for (const auto& door : report.doors) {
      out.Value(static_cast<double>(door.*member), {{"door", door.name}});
    }
  };
  add("tidegate_connections", "Open connections.", Type::kGauge, &MetricsReport::Door::open);
  add("tidegate_connections_accepted_total", "Connections accepted.", Type::kCounter,
      &MetricsReport::Door::accepted);
  out.Family("tidegate_connections_shed_total",
             "Connections closed right after they were accepted, by the limit that they exceeded.",
             Type::kCounter);
  for (const auto& door : report.doors) {
    for (std::size_t i = 0; i < door.shed.size(); ++i) {
      out.Value(static_cast<double>(door.shed[i]),
                {{"door", door.name}, {"reason", MetricsReport::kShedReasons[i]}});
    }
  }
  add("tidegate_requests_total", "Requests read.", Type::kCounter, &MetricsReport::Door::requests);
  add("tidegate_requests_refused_total", "Requests that were no HTTP, too large or too slow.",
      Type::kCounter, &MetricsReport::Door::refused);
}

void AddResponses(Writer& out, const MetricsReport& report) {
  static constexpr std::array<std::string_view, 5> kClasses = {"1xx", "2xx", "3xx", "4xx", "5xx"};
  out.Family("tidegate_responses_total", "Answers by class of status.", Type::kCounter);
  for (const auto& door : report.doors) {
    if (!door.responses) continue;
    // Nobody sends interim answers with a status of their own; the others are there from the
    // start, so that a rate sees the first of them.
    for (std::size_t i = 1; i < kClasses.size(); ++i) {
      out.Value(static_cast<double>((*door.responses)[i]),
                {{"door", door.name}, {"code", kClasses[i]}});
    }
  }
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

}  // namespace

std::string Expose(const MetricsReport& report) {
  Writer out;
  out.Family("tidegate_build_info", "Which tidegate this is.", Type::kGauge);
  out.Value(1, {{"version", report.version}});
  AddDecisions(out, report);
  AddStore(out, report);
  AddDoors(out, report);
  AddResponses(out, report);
  out.Gauge("tidegate_reactors", "Threads that serve, each with its own connections.",
            static_cast<double>(report.reactors));
  out.Gauge("tidegate_rules", "Rules in force.", static_cast<double>(report.rules));
  out.Family("tidegate_config_reloads_total", "Configurations read since the start, by result.",
             Type::kCounter);
  out.Value(static_cast<double>(report.reloads), {{"result", "applied"}});
  out.Value(static_cast<double>(report.failed_reloads), {{"result", "refused"}});
  out.Gauge("tidegate_config_applied_timestamp_seconds",
            "When the configuration in force was applied.", report.last_reload_seconds);
  out.Gauge("tidegate_config_last_reload_successful",
            "0: the configuration that was read last was refused, and an older one is in force.",
            report.last_reload_refused ? 0 : 1);
  for (const MetricFamily& family : report.more) AddMore(out, family);
  for (const MetricFamily& family : ProcessMetrics()) AddMore(out, family);
  return out.Take();
}

}  // namespace tidegate
