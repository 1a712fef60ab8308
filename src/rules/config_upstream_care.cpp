// SPDX-License-Identifier: Apache-2.0
// health, ejection and retries of an upstream: what is done about servers that do not answer.
#include <algorithm>
#include <charconv>
#include <memory_resource>

#include "rules/ascii.hpp"
#include "rules/config_gateway.hpp"
#include "rules/path.hpp"

namespace tidegate {
namespace {

using Health = UpstreamSpec::Health;
using Ejection = UpstreamSpec::Ejection;
using Retries = UpstreamSpec::Retries;

constexpr std::size_t kMaxHealthPath = 2'048;

struct HealthDraft {
  Health health;
  const YamlNode* timeout = nullptr;
};

/// A path in normal form; it may have a query.
void ReadHealthPath(const ConfigValue& value, HealthDraft& draft) {
  const auto text = value.Text("a path, as in `/healthz`");
  if (!text) return;
  const std::string_view path = std::string_view{*text}.substr(0, text->find('?'));
  std::pmr::monotonic_buffer_resource memory;
  const auto normal = NormalizePath(path, Slashes::kKeep, memory);
  const bool plain = std::all_of(text->begin(), text->end(),
                                 [](char c) { return c > ' ' && c < 127 && c != '#'; });
  if (!normal || !plain || text->size() > kMaxHealthPath) {
    return value.Error(
        "should be a path of plain ASCII that begins with `/`, as in `/healthz` or "
        "`/healthz?full`");
  }
  if (*normal != path) {
    return value.Error("should be in normal form: " + Ticked(*normal) + " is what is asked for");
  }
  draft.health.path = *text;
}

/// Three digits, of a response that is no interim one.
std::optional<int> StatusOf(std::string_view text) noexcept {
  int status = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, status);
  if (error != std::errc{} || rest != end || status < 200 || status > 599) return std::nullopt;
  return status;
}

void ReadStatus(const ConfigValue& value, HealthDraft& draft) {
  const auto text = value.Text("a status or a range of them, as in `200-399`");
  if (!text) return;
  const std::size_t dash = std::min(text->find('-'), text->size());
  const auto from = StatusOf(std::string_view{*text}.substr(0, dash));
  const auto to = dash == text->size() ? from : StatusOf(std::string_view{*text}.substr(dash + 1));
  if (!from || !to || *from > *to) {
    return value.Error("should be a status from 200 to 599, or a range of them, as in `200-399`");
  }
  draft.health.status_from = *from;
  draft.health.status_to = *to;
}

template <auto Member, std::int64_t Min, std::int64_t Max>
void ReadCount(const ConfigValue& value, HealthDraft& draft) {
  ReadNumber<Member, Min, Max>(value, draft.health);
}

constexpr std::array<ConfigKey<HealthDraft>, 7> kHealthKeys = {{
    {"path", ReadHealthPath},
    {"host", [](const ConfigValue& v, HealthDraft& d) { Put(d.health.host, ReadHostPort(v)); }},
    {"interval", [](const ConfigValue& v,
                    HealthDraft& d) { ReadMillis<&Health::interval, 100, kHourMs>(v, d.health); }},
    {"timeout",
     [](const ConfigValue& v, HealthDraft& d) {
       d.timeout = &v.node();
       ReadMillis<&Health::timeout, 10, kMinuteMs>(v, d.health);
     }},
    {"healthy", ReadCount<&Health::healthy, 1, 100>},
    {"unhealthy", ReadCount<&Health::unhealthy, 1, 100>},
    {"status", ReadStatus},
}};

constexpr std::array<ConfigKey<Ejection>, 3> kEjectionKeys = {{
    {"failures", ReadNumber<&Ejection::failures, 1, 1'000, Ejection>},
    {"time", ReadMillis<&Ejection::time, 100, kHourMs, Ejection>},
    {"percent", ReadNumber<&Ejection::percent, 1, 100, Ejection>},
}};

/// Only what says that the request was not answered by whom it was meant for: to repeat a request
/// after any other answer would be to do a thing twice.
void ReadStatuses(const ConfigValue& value, Retries& retries) {
  std::vector<int>& statuses = retries.statuses;
  statuses.clear();
  value.EachItemOrOne("names no status; leave the key out", [&](const ConfigValue& item) {
    const auto status = item.Integer(200, 599);
    if (!status) return;
    if (*status < 502 || *status > 504) {
      return item.Error("should be 502, 503 or 504, but is " + Ticked(std::to_string(*status)));
    }
    const int number = static_cast<int>(*status);
    const auto place = std::lower_bound(statuses.begin(), statuses.end(), number);
    if (place != statuses.end() && *place == number) return item.Error("stands here twice");
    statuses.insert(place, number);
  });
}

constexpr std::array<ConfigKey<Retries>, 4> kRetryKeys = {{
    {"attempts", ReadNumber<&Retries::attempts, 1, 10, Retries>},
    {"percent", ReadNumber<&Retries::percent, 1, 100, Retries>},
    {"timeout", [](const ConfigValue& v, Retries& r) { Put(r.timeout, v.Bool()); }},
    {"statuses", ReadStatuses},
}};

}  // namespace

void ReadHealth(const ConfigValue& value, UpstreamSpec& upstream) {
  if (IsOff(value)) return;
  HealthDraft draft;
  ReadSection(value, kHealthKeys, draft);
  Health& health = draft.health;
  if (draft.timeout == nullptr) {
    health.timeout = std::min(health.timeout, health.interval);
  } else if (health.timeout > health.interval) {
    const Where where{.parent = &value.where(), .key = "timeout"};
    value.context().Error(draft.timeout->at, where,
                          "is longer than `interval`: a question would be asked before the one "
                          "before it has ended");
  }
  upstream.health = std::move(health);
}

void ReadEjection(const ConfigValue& value, UpstreamSpec& upstream) {
  if (IsOff(value)) {
    upstream.ejection.failures = 0;
  } else {
    ReadSection(value, kEjectionKeys, upstream.ejection);
  }
}

void ReadRetries(const ConfigValue& value, UpstreamSpec& upstream) {
  if (IsOff(value)) {
    upstream.retries.attempts = 0;
  } else {
    ReadSection(value, kRetryKeys, upstream.retries);
  }
}

void AppendUpstreamCareKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("health", kHealthKeys));
  sections.push_back(KeysOf("ejection", kEjectionKeys));
  sections.push_back(KeysOf("retries", kRetryKeys));
}

}  // namespace tidegate
