// SPDX-License-Identifier: Apache-2.0
#include "cli/status.hpp"

#include <algorithm>
#include <cstdint>
#include <ostream>

#include "cli/freshness.hpp"
#include "cli/human.hpp"
#include "cli/last_error.hpp"
#include "cli/latency_buckets.hpp"
#include "cli/table.hpp"

namespace tidegate::cli {
namespace {

/// `store 1,000, cache 20`: those that are not 0.
std::string CountsText(const Members& counts) {
  std::string text;
  for (const auto& count : counts) {
    if (WholeOf(count.value()) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(std::string_view(count.key())) + " " +
            Count(WholeOf(count.value()));
  }
  return text.empty() ? "none" : text;
}

/// Whether there were any. Only a part of them is timed.
enum class Answers : std::uint8_t { kNone, kSome };

std::string LatencyText(const Members& latency, Answers answers) {
  const LatencyBuckets buckets = LatencyBuckets::Of(latency);
  const auto p50 = buckets.Quantile(0.5);
  if (!p50) return answers == Answers::kSome ? "too few to tell yet" : "no answers yet";
  return "p50 " + p50->Text() + ", p99 " + buckets.Quantile(0.99)->Text() + " of " +
         Count(buckets.count());
}

void AddStore(const Members& status, Table& facts) {
  const Members store = status.Of("store");
  const bool whole = store.Whole("connected") == store.Whole("nodes");
  const bool closed = !store.Has("breaker") || store.Text("breaker") == "closed";
  std::string text = store.Text("kind");
  if (store.Has("mode")) text += " " + store.Text("mode");
  if (store.Has("url")) text += " " + store.Text("url");
  facts.Add({"store", Cell(text, whole && closed ? Ink::kPlain : Ink::kBad)});
  if (!store.Has("breaker")) return;
  facts.Add({"", Cell("connected " + store.Text("connected") + " of " + store.Text("nodes") +
                          ", breaker " + store.Text("breaker") + ", waiting " +
                          Count(store.Whole("waiting")),
                      whole && closed ? Ink::kGood : Ink::kBad)});
  if (const Members error = store.Of("last_error"); !error.empty()) {
    facts.Add({"", Cell(LastErrorText(error), whole && closed ? Ink::kPlain : Ink::kBad)});
  }
  facts.Add({"", LatencyText(store.Of("latency"),
                             store.Whole("calls") > 0 ? Answers::kSome : Answers::kNone)});
  facts.Add({"", Count(store.Whole("batches")) + " batches, " + Count(store.Whole("calls")) +
                     " calls, " + Count(store.Whole("entries")) + " entries, " +
                     Count(store.Whole("cache_hits")) + " denials from the cache"});
}

void AddOverrides(const Members& status, Table& facts) {
  const Members overrides = status.Of("overrides");
  if (overrides.empty()) return;
  const Freshness freshness = Freshness::Of(overrides);
  std::string text = freshness.Text();
  if (freshness.known) {
    text = Count(overrides.Whole("count")) + (text.empty() ? "" : ", ") + text;
  }
  facts.Add({"overrides", Cell(text, freshness.good() ? Ink::kPlain : Ink::kWarning)});
}

void AddConfig(const Members& status, Table& facts) {
  const Members config = status.Of("config");
  if (config.empty()) return;
  const std::int64_t refused = config.Whole("refused");
  facts.Add({"config", Cell(Plural(config.Whole("rules"), "rule") + " since " +
                                TimeStamp(config.Whole("applied_ms")) + ", " +
                                Plural(config.Whole("reloads"), "reload") +
                                (refused == 0 ? "" : ", " + Count(refused) + " refused"),
                            refused == 0 ? Ink::kPlain : Ink::kWarning)});
}

void PrintStatus(const Members& status, const Console& console) {
  Table facts({{""}, {""}});
  facts.Add({"server", Cell("tidegate " + status.Text("version") + ", node " + status.Text("node") +
                                ", up " + Span(status.Ms("uptime_ms")) + ", " +
                                Plural(status.Whole("threads"), "thread") +
                                (status.Yes("draining") ? ", draining" : ""),
                            status.Yes("draining") ? Ink::kWarning : Ink::kStrong)});
  AddStore(status, facts);
  const Members memory = status.Of("memory");
  if (!memory.empty()) {
    facts.Add({"memory", Plural(memory.Whole("tracked"), "key") + " tracked, " +
                             Count(memory.Whole("overflowed")) + " overflowed, " +
                             Bytes(memory.Whole("list_bytes")) + " of lists"});
  }
  const Members fleet = status.Of("fleet");
  if (!fleet.empty()) {
    const std::int64_t mismatches = fleet.Whole("key_mismatches");
    facts.Add({"fleet", Cell(Plural(fleet.Whole("nodes"), "node") + ", " + Count(mismatches) +
                                 " with another key",
                             mismatches == 0 ? Ink::kPlain : Ink::kBad)});
  }
  AddConfig(status, facts);
  AddOverrides(status, facts);
  const Members decisions = status.Of("decisions");
  if (status.Has("requests")) facts.Add({"requests", CountsText(status.Of("requests"))});
  facts.Add({"decisions", CountsText(decisions)});
  facts.Add({"decided by", CountsText(status.Of("decided_by"))});
  const std::string failures = CountsText(status.Of("failures"));
  facts.Add({"failures", Cell(failures, failures == "none" ? Ink::kPlain : Ink::kBad)});
  const bool decided = std::ranges::any_of(
      decisions, [](const auto& outcome) { return WholeOf(outcome.value()) > 0; });
  facts.Add(
      {"latency", LatencyText(status.Of("latency"), decided ? Answers::kSome : Answers::kNone)});
  facts.Print(console);
  Table doors({{"DOOR"},
               {"CONNECTIONS", Align::kRight},
               {"ACCEPTED", Align::kRight},
               {"REQUESTS", Align::kRight},
               {"REFUSED", Align::kRight},
               {"SHED", Align::kRight}});
  for (const auto& entry : status.Array("doors")) {
    const Members door(entry);
    doors.Add({door.Text("door"), Count(door.Whole("connections")), Count(door.Whole("accepted")),
               Count(door.Whole("requests")), Count(door.Whole("refused")),
               Count(door.Whole("shed"))});
  }
  if (!doors.empty()) {
    console.out << '\n';
    doors.Print(console);
  }
}

}  // namespace

int Status(const AskOptions& options, const Console& console) {
  return AskAndPrint("status", options, {"/v1/status"}, console,
                     [&](const Members& status) { PrintStatus(status, console); });
}

}  // namespace tidegate::cli
