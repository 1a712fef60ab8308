// SPDX-License-Identifier: Apache-2.0
#include "metrics/prometheus.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "redis/fleet.hpp"
#include "redis/redis_server.hpp"
#include "support/child_process.hpp"
#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::metrics_test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

std::string Encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      encoded += c;
    } else {
      encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return encoded;
}

std::string Query(std::initializer_list<std::pair<std::string_view, std::string>> values) {
  std::string query;
  for (const auto& [name, value] : values) {
    query.append(query.empty() ? "?" : "&").append(name).append("=").append(Encoded(value));
  }
  return query;
}

bool IsNumber(const json::value& point) {
  // A point has a time, and its value as a string.
  const auto& text = point.as_array().at(1).as_string();
  return text != "NaN";
}

}  // namespace

Prometheus::Prometheus(const fs::path& folder, const std::string& config)
    : folder_(folder), port_(test::FreePort()), started_(std::time(nullptr)) {
  const fs::path file = folder_ / "prometheus.yml";
  std::ofstream(file) << config;
  process_ = test::ChildProcess(
      {"prometheus", "--config.file=" + file.string(),
       "--storage.tsdb.path=" + (folder_ / "tsdb").string(),
       "--web.listen-address=127.0.0.1:" + std::to_string(port_), "--query.lookback-delta=5s"},
      {.output = folder_ / "prometheus.log"});
  if (!test::WaitUntil([&] { return redis_test::Fetch(port_, "/-/ready").status == 200; })) {
    throw std::runtime_error("prometheus does not start:\n" + Output());
  }
}

json::object Prometheus::Get(const std::string& path) const {
  const redis_test::Answer answer = redis_test::Fetch(port_, path);
  boost::system::error_code error;
  json::value value = json::parse(answer.body, error);
  if (error || !value.is_object()) return {{"error", "no JSON: " + answer.body}};
  return value.as_object();
}

bool Prometheus::Answer::HasData() const {
  return std::ranges::any_of(series, &Series::has_number);
}

bool Prometheus::Answer::Names(std::string_view label, std::string_view value) const {
  return std::ranges::any_of(series, [&](const Series& each) {
    const auto* const found = each.labels.if_contains(label);
    return found != nullptr && found->as_string() == value;
  });
}

Prometheus::Answer Prometheus::SinceStart(const std::string& expression) const {
  const json::object reply =
      Get("/api/v1/query_range" + Query({{"query", expression},
                                         {"start", std::to_string(started_)},
                                         {"end", std::to_string(std::time(nullptr) + 1)},
                                         {"step", "1"}}));
  Answer answer;
  if (const auto* const error = reply.if_contains("error")) {
    answer.problem = error->as_string().c_str();
    return answer;
  }
  for (const json::value& each : reply.at("data").at("result").as_array()) {
    const auto& values = each.at("values").as_array();
    answer.series.push_back(
        {each.at("metric").as_object(), std::ranges::any_of(values, &IsNumber)});
  }
  return answer;
}

bool Prometheus::True(const std::string& expression) const {
  const json::object reply = Get("/api/v1/query" + Query({{"query", expression}}));
  if (reply.contains("error")) return false;
  const auto& result = reply.at("data").at("result").as_array();
  return std::ranges::any_of(result,
                             [](const json::value& each) { return IsNumber(each.at("value")); });
}

std::vector<std::string> Prometheus::LabelValues(const std::string& label,
                                                 const std::string& selector) const {
  const json::object reply =
      Get("/api/v1/label/" + label + "/values" + Query({{"match[]", selector}}));
  std::vector<std::string> values;
  if (reply.contains("error")) return values;
  for (const json::value& value : reply.at("data").as_array()) {
    values.emplace_back(value.as_string());
  }
  return values;
}

std::vector<RunningRule> Prometheus::Rules() const {
  std::vector<RunningRule> rules;
  const json::object reply = Get("/api/v1/rules");
  for (const json::value& group : reply.at("data").at("groups").as_array()) {
    for (const json::value& rule : group.at("rules").as_array()) {
      const auto& object = rule.as_object();
      const auto* const problem = object.if_contains("lastError");
      rules.push_back({object.at("name").as_string().c_str(),
                       object.at("query").as_string().c_str(),
                       object.at("type").as_string() == "alerting",
                       problem != nullptr ? problem->as_string().c_str() : ""});
    }
  }
  return rules;
}

}  // namespace tidegate::metrics_test
