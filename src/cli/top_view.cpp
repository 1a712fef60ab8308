// SPDX-License-Identifier: Apache-2.0
#include "cli/top_view.hpp"

#include <algorithm>
#include <map>

#include "cli/freshness.hpp"
#include "cli/last_error.hpp"
#include "cli/quota_text.hpp"

namespace tidegate::cli {

namespace json = boost::json;
using std::chrono::milliseconds;

namespace {

/// Differences of counts, as rates.
class Rates {
 public:
  Rates(const Members& before, const Members& now, double seconds)
      : before_(before), now_(now), seconds_(seconds) {}

  [[nodiscard]] double Of(std::string_view name) const {
    const double more = now_.Number(name) - before_.Number(name);
    return seconds_ > 0 && more > 0 ? more / seconds_ : 0;
  }
  [[nodiscard]] double Sum() const {
    double sum = 0;
    for (const auto& count : now_) sum += Of(std::string_view(count.key()));
    return sum;
  }
  [[nodiscard]] std::vector<View::Named> All() const {
    std::vector<View::Named> all;
    for (const auto& count : now_) {
      all.push_back(
          {std::string(std::string_view(count.key())), Of(std::string_view(count.key()))});
    }
    return all;
  }

 private:
  Members before_;
  Members now_;
  double seconds_;
};

View::Latency LatencyOf(const Members& before, const Members& now) {
  const LatencyBuckets recent =
      LatencyBuckets::Of(now.Of("latency")).Since(LatencyBuckets::Of(before.Of("latency")));
  return {recent.Quantile(0.5), recent.Quantile(0.99)};
}

View::Store StoreOf(const Members& before, const Members& now) {
  View::Store store{.kind = now.Text("kind"),
                    .mode = now.Text("mode"),
                    .breaker = now.Text("breaker"),
                    .connected = now.Whole("connected"),
                    .nodes = now.Whole("nodes"),
                    .waiting = now.Whole("waiting"),
                    .latency = LatencyOf(before, now)};
  // What is over for a minute is history, and `tidegate status` has it.
  const Members error = now.Of("last_error");
  if (!error.empty() && (!store.well() || error.Ms("age_ms") < std::chrono::minutes{1})) {
    store.trouble = LastErrorText(error);
  }
  return store;
}

std::vector<View::Rule> RulesOf(const TopSample* before, const TopSample& now, double seconds) {
  std::map<std::string, Members> earlier;
  if (before != nullptr) {
    for (const auto& entry : Members(before->rules).Array("rules")) {
      earlier.emplace(Members(entry).Text("rule"), Members(entry).Of("decisions"));
    }
  }
  std::vector<View::Rule> rules;
  for (const auto& entry : Members(now.rules).Array("rules")) {
    const Members rule(entry);
    const auto found = earlier.find(rule.Text("rule"));
    const Rates rates(found == earlier.end() ? Members{} : found->second, rule.Of("decisions"),
                      seconds);
    rules.push_back(
        {.name = rule.Text("rule"),
         .limit = QuotaOf(rule),
         .algorithm = rule.Text("algorithm"),
         .mode = rule.Text("mode"),
         .allowed = rates.Of("allowed") + rates.Of("shadow_allowed") + rates.Of("exempted"),
         .denied = rates.Of("denied") + rates.Of("shadow_denied") + rates.Of("banned")});
  }
  std::ranges::stable_sort(rules, [](const View::Rule& a, const View::Rule& b) {
    return a.allowed + a.denied > b.allowed + b.denied;
  });
  return rules;
}

View::Hot HotOf(const Members& list) {
  View::Hot hot;
  hot.total = list.Whole("total");
  for (const auto& entry : list.Array("keys")) {
    const Members key(entry);
    hot.keys.push_back({key.Text("rule"), key.Text("key"), key.Whole("count"), key.Whole("error")});
  }
  return hot;
}

void DropZeros(std::vector<View::Named>& rates) {
  std::erase_if(rates, [](const View::Named& rate) { return rate.rate <= 0; });
}

json::object ObjectOf(const std::vector<View::Named>& rates) {
  json::object object;
  for (const View::Named& rate : rates) object[rate.name] = rate.rate;
  return object;
}

json::object ObjectOf(const View::Latency& latency) {
  const auto us = [](const std::optional<LatencyBound>& bound) {
    return bound ? json::value(bound->seconds * 1e6) : json::value(nullptr);
  };
  return {{"p50_us", us(latency.p50)}, {"p99_us", us(latency.p99)}};
}

}  // namespace

std::string_view Name(HotBy by) noexcept {
  constexpr std::string_view kNames[] = {"requests", "denials", "cost"};
  return kNames[static_cast<std::size_t>(by)];
}

View ViewOf(const TopSample* before, const TopSample& now) {
  const Members status(now.status);
  // Another process has begun to count anew.
  if (before != nullptr &&
      (Members(before->status).Text("node") != status.Text("node") ||
       Members(before->status).Whole("uptime_ms") > status.Whole("uptime_ms"))) {
    before = nullptr;
  }
  const Members earlier = before == nullptr ? Members{} : Members(before->status);
  View view;
  view.answered = true;
  view.wall = now.wall;
  view.version = status.Text("version");
  view.node = status.Text("node");
  view.uptime = status.Ms("uptime_ms");
  view.threads = status.Whole("threads");
  view.overrides = status.Of("overrides").Whole("count");
  view.overrides_known = Freshness::Of(status.Of("overrides")).known;
  view.draining = status.Yes("draining");
  if (before != nullptr) {
    view.interval = std::chrono::round<milliseconds>(now.at - before->at);
  }
  const double seconds =
      std::chrono::duration<double>(before == nullptr ? view.uptime : view.interval).count();
  view.store = StoreOf(earlier.Of("store"), status.Of("store"));
  if (const Members fleet = status.Of("fleet"); !fleet.empty()) {
    view.fleet = {fleet.Whole("nodes"), fleet.Whole("key_mismatches")};
  }
  if (const Members now_requests = status.Of("requests"); !now_requests.empty()) {
    const Rates requests(earlier.Of("requests"), now_requests, seconds);
    view.requests = requests.Sum();
    view.denied_requests = requests.Of("denied");
  }
  const Rates decisions(earlier.Of("decisions"), status.Of("decisions"), seconds);
  view.decisions = decisions.Sum();
  view.denied = decisions.Of("denied") + decisions.Of("banned");
  view.outcomes = decisions.All();
  std::erase_if(view.outcomes, [](const View::Named& outcome) {
    return outcome.name == "allowed" || outcome.name == "denied";
  });
  DropZeros(view.outcomes);
  view.sources = Rates(earlier.Of("decided_by"), status.Of("decided_by"), seconds).All();
  view.failures = Rates(earlier.Of("failures"), status.Of("failures"), seconds).All();
  DropZeros(view.failures);
  view.latency = LatencyOf(earlier, status);
  view.rules = RulesOf(before, now, seconds);
  const Members hot(now.hot);
  view.window = hot.Ms("window_ms");
  for (const HotBy by : {HotBy::kRequests, HotBy::kDenials, HotBy::kCost}) {
    view.hot[static_cast<std::size_t>(by)] = HotOf(hot.Of(Name(by)));
  }
  return view;
}

json::object JsonOf(const View& view, const TopSample& now) {
  json::array rules;
  for (const View::Rule& rule : view.rules) {
    rules.push_back(json::object{
        {"rule", rule.name}, {"allowed_per_s", rule.allowed}, {"denied_per_s", rule.denied}});
  }
  const json::value requests = view.requests ? json::value(*view.requests) : json::value(nullptr);
  const json::value denied =
      view.requests ? json::value(view.denied_requests) : json::value(nullptr);
  return {{"time_ms", view.wall.count()},
          {"interval_ms", view.interval.count()},
          {"requests_per_s", requests},
          {"denied_requests_per_s", denied},
          {"decisions_per_s", view.decisions},
          {"denied_per_s", view.denied},
          {"decided_by_per_s", ObjectOf(view.sources)},
          {"latency", ObjectOf(view.latency)},
          {"store_latency", ObjectOf(view.store.latency)},
          {"rules", std::move(rules)},
          {"hot", now.hot},
          {"status", now.status}};
}

}  // namespace tidegate::cli
