// SPDX-License-Identifier: Apache-2.0
#include "cli/top_view.hpp"

#include <algorithm>
#include <expected>
#include <map>

#include "cli/response.hpp"

namespace tidegate::cli {

CommandResult<TopSample> TakeSample(const AdminClient& client) {
  TopSample sample;
  auto status = client.Send({"/v1/status"});
  if (!status) return std::unexpected(status.error());
  // The sample has the time of the status, because the rates come from its counts.
  sample.at = std::chrono::steady_clock::now();
  sample.wall = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  auto rules = client.Send({"/v1/rules"});
  if (!rules) return std::unexpected(rules.error());
  auto hot = client.Send({"/v1/hot?limit=50"});
  if (!hot) return std::unexpected(hot.error());
  sample.status = std::move(status->object);
  sample.rules = std::move(rules->object);
  sample.hot = std::move(hot->object);
  return sample;
}

namespace json = boost::json;
using std::chrono::milliseconds;

namespace {

/// Computes rates per second of counts that grew from `before` to `now`.
struct CountRates {
  JsonView before;
  JsonView now;
  double seconds;

  [[nodiscard]] double Of(std::string_view name) const {
    const double more = now.Number(name) - before.Number(name);
    return seconds > 0 && more > 0 ? more / seconds : 0;
  }
  [[nodiscard]] double Sum() const {
    double sum = 0;
    for (const auto& count : now) sum += Of(count.key());
    return sum;
  }
  [[nodiscard]] std::vector<View::Named> All() const {
    std::vector<View::Named> all;
    for (const auto& count : now) all.push_back({std::string(count.key()), Of(count.key())});
    return all;
  }
};

View::Latency LatencyOf(const JsonView& before, const JsonView& now) {
  const LatencyBuckets recent =
      LatencyBuckets::Of(now.Object("latency")).Since(LatencyBuckets::Of(before.Object("latency")));
  return {recent.Quantile(0.5), recent.Quantile(0.99)};
}

std::vector<View::Rule> RulesOf(const TopSample* before, const TopSample& now, double seconds) {
  std::map<std::string, JsonView> earlier;
  if (before != nullptr) {
    for (const JsonView& rule : JsonView(before->rules).Objects("rules")) {
      earlier.emplace(rule.Text("rule"), rule.Object("decisions"));
    }
  }
  std::vector<View::Rule> rules;
  for (const JsonView& rule : JsonView(now.rules).Objects("rules")) {
    const auto found = earlier.find(rule.Text("rule"));
    const CountRates rates{found == earlier.end() ? JsonView{} : found->second,
                           rule.Object("decisions"), seconds};
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

View ViewOf(const TopSample* before, const TopSample& now) {
  const JsonView status(now.status);
  // After a restart the counts begin at zero.
  if (before != nullptr && (JsonView(before->status).Text("node") != status.Text("node") ||
                            JsonView(before->status).Int("uptime_ms") > status.Int("uptime_ms"))) {
    before = nullptr;
  }
  const JsonView earlier = before == nullptr ? JsonView{} : JsonView(before->status);
  View view;
  view.status = now.status;
  view.hot = now.hot;
  view.wall = now.wall;
  if (before != nullptr) view.interval = std::chrono::round<milliseconds>(now.at - before->at);
  const double seconds =
      std::chrono::duration<double>(before == nullptr ? status.Ms("uptime_ms") : view.interval)
          .count();
  view.store_latency = LatencyOf(earlier.Object("store"), status.Object("store"));
  if (const JsonView now_requests = status.Object("requests"); !now_requests.empty()) {
    const CountRates requests{earlier.Object("requests"), now_requests, seconds};
    view.requests = requests.Sum();
    view.denied_requests = requests.Of("denied");
  }
  const CountRates decisions{earlier.Object("decisions"), status.Object("decisions"), seconds};
  view.decisions = decisions.Sum();
  view.denied = decisions.Of("denied") + decisions.Of("banned");
  view.outcomes = decisions.All();
  std::erase_if(view.outcomes, [](const View::Named& outcome) {
    return outcome.name == "allowed" || outcome.name == "denied";
  });
  DropZeros(view.outcomes);
  view.sources =
      CountRates{earlier.Object("decided_by"), status.Object("decided_by"), seconds}.All();
  view.failures = CountRates{earlier.Object("failures"), status.Object("failures"), seconds}.All();
  DropZeros(view.failures);
  view.latency = LatencyOf(earlier, status);
  view.rules = RulesOf(before, now, seconds);
  return view;
}

json::object JsonOf(const View& view) {
  json::array rules;
  for (const View::Rule& rule : view.rules) {
    rules.push_back(json::object{
        {"rule", rule.name}, {"allowed_per_s", rule.allowed}, {"denied_per_s", rule.denied}});
  }
  json::value requests;  // null if the server does not report them.
  json::value denied;
  if (view.requests) {
    requests = *view.requests;
    denied = view.denied_requests;
  }
  return {{"time_ms", view.wall.count()},
          {"interval_ms", view.interval.count()},
          {"requests_per_s", requests},
          {"denied_requests_per_s", denied},
          {"decisions_per_s", view.decisions},
          {"denied_per_s", view.denied},
          {"decided_by_per_s", ObjectOf(view.sources)},
          {"latency", ObjectOf(view.latency)},
          {"store_latency", ObjectOf(view.store_latency)},
          {"rules", std::move(rules)},
          {"hot", view.hot},
          {"status", view.status}};
}

void TopModel::OnAnswer(CommandResult<TopSample> answer) {
  if (!answer) {
    problem_ = answer.error().message;
    return;
  }
  problem_.clear();
  answered_at_ = answer->at;
  // While paused the view stays, but samples are kept, so that the next rates cover one interval.
  if (!paused_) view_ = ViewOf(now_ ? &*now_ : nullptr, *answer);
  now_ = std::move(*answer);
}

TopModel::Next TopModel::OnKey(char key) {
  if (key == 'q' || key == 'Q') return Next::kQuit;
  if (key == 'p' || key == 'P') paused_ = !paused_;
  if (key == 'r') by_ = HotBy::kRequests;
  if (key == 'd') by_ = HotBy::kDenials;
  if (key == 'c') by_ = HotBy::kCost;
  return Next::kStay;
}

View TopModel::ViewAt(Instant now) const {
  View view = view_;
  view.server = server_;
  view.by = by_;
  view.paused = paused_;
  view.problem = problem_;
  view.since_answer = std::chrono::floor<std::chrono::milliseconds>(now - answered_at_);
  return view;
}

}  // namespace tidegate::cli
