// SPDX-License-Identifier: Apache-2.0
// paths, responses, api, limits, log: how the server runs.
#include <algorithm>
#include <chrono>

#include "rules/config_sections.hpp"
#include "rules/size_text.hpp"

namespace tidegate {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

enum class HeaderSet : std::uint8_t { kRateLimit, kLegacy, kX };
constexpr std::array<Choice<HeaderSet>, 3> kHeaderSets = {{{"ratelimit", HeaderSet::kRateLimit},
                                                           {"ratelimit-legacy", HeaderSet::kLegacy},
                                                           {"x-ratelimit", HeaderSet::kX}}};

void ReadHeaders(const ConfigValue& value, Config::Responses& responses) {
  responses.ratelimit = responses.ratelimit_legacy = responses.x_ratelimit = false;
  value.EachItem([&](const ConfigValue& item) {
    const auto set = item.OneOf(kHeaderSets);
    if (!set) return;
    bool& wanted = *set == HeaderSet::kRateLimit ? responses.ratelimit
                   : *set == HeaderSet::kLegacy  ? responses.ratelimit_legacy
                                                 : responses.x_ratelimit;
    if (wanted) item.Error("stands here twice");
    wanted = true;
  });
}

using XReset = Config::Responses::XReset;
constexpr std::array<Choice<XReset>, 2> kResets = {
    {{"delta", XReset::kDelta}, {"epoch", XReset::kEpoch}}};

using ShowDecidedBy = Config::Responses::ShowDecidedBy;
constexpr std::array<Choice<ShowDecidedBy>, 3> kShowDecidedBy = {
    {{"trusted", ShowDecidedBy::kTrusted},
     {"always", ShowDecidedBy::kAlways},
     {"never", ShowDecidedBy::kNever}}};

constexpr std::array<ConfigKey<Config::Responses>, 6> kResponsesKeys = {{
    {"headers", ReadHeaders},
    {"x_ratelimit_reset",
     [](const ConfigValue& v, Config::Responses& r) { Put(r.x_reset, v.OneOf(kResets)); }},
    {"retry_after_jitter",
     [](const ConfigValue& v, Config::Responses& r) {
       Put(r.retry_after_jitter, v.Duration(Micros{0}, hours{1}));
     }},
    {"decided_by", [](const ConfigValue& v,
                      Config::Responses& r) { Put(r.decided_by, v.OneOf(kShowDecidedBy)); }},
    {"partition_key",
     [](const ConfigValue& v, Config::Responses& r) { Put(r.partition_key, v.Bool()); }},
    {"denial", [](const ConfigValue& v, Config::Responses& r) { ReadDenial(v, r.denial); }},
}};

constexpr std::array<ConfigKey<Config::Api>, 2> kApiKeys = {{
    {"inline_quotas", [](const ConfigValue& v, Config::Api& a) { Put(a.inline_quotas, v.Bool()); }},
    {"hidden_rules", [](const ConfigValue& v, Config::Api& a) { Put(a.hidden_rules, v.Bool()); }},
}};

constexpr std::array<ConfigKey<Config::Resp>, 1> kRespKeys = {{
    {"throttle", [](const ConfigValue& v, Config::Resp& r) { Put(r.throttle, v.Bool()); }},
}};

/// The keys of `limits` as they were read.
struct LimitsDraft : Config::Limits {
  const YamlNode* target_bytes_node = nullptr;
};

template <std::size_t Config::Limits::*Member, std::int64_t Min, std::int64_t Max>
void ReadCount(const ConfigValue& value, LimitsDraft& limits) {
  if (const auto n = value.Integer(Min, Max)) limits.*Member = static_cast<std::size_t>(*n);
}

template <std::size_t Config::Limits::*Member, std::int64_t Min, std::int64_t Max>
void ReadBytes(const ConfigValue& value, LimitsDraft& limits) {
  Put(limits.*Member, value.Size(Min, Max));
}

/// Below 100 ms slow but honest clients would be cut off; above an hour nothing is protected.
template <Micros Config::Limits::*Member>
void ReadTimeout(const ConfigValue& value, LimitsDraft& limits) {
  Put(limits.*Member, value.Duration(milliseconds{100}, hours{1}));
}

template <Micros Config::Limits::*Member>
void ReadDrain(const ConfigValue& value, LimitsDraft& limits) {
  Put(limits.*Member, value.Duration(Micros{0}, minutes{10}));
}

/// The paths of the API and of health checks fit.
constexpr std::int64_t kMinTarget = 64;

using L = Config::Limits;
constexpr std::array<ConfigKey<LimitsDraft>, 13> kLimitsKeys = {{
    {"connections", ReadCount<&L::connections, 1, 1'000'000>},
    {"connections_per_address", ReadCount<&L::connections_per_address, 0, 1'000'000>},
    {"buffer_bytes", ReadBytes<&L::buffer_bytes, kMebibyte, kMebibyte << 16>},
    {"header_bytes", ReadBytes<&L::header_bytes, kKibibyte, kMebibyte>},
    {"header_count", ReadCount<&L::header_count, 1, 128>},
    {"target_bytes",
     [](const ConfigValue& v, LimitsDraft& l) {
       l.target_bytes_node = &v.node();
       ReadBytes<&L::target_bytes, kMinTarget, kMebibyte>(v, l);
     }},
    {"body_bytes", ReadBytes<&L::body_bytes, 0, 64 * kMebibyte>},
    {"header_timeout", ReadTimeout<&L::header_timeout>},
    {"body_timeout", ReadTimeout<&L::body_timeout>},
    {"body_rate", ReadBytes<&L::body_rate, 0, kMebibyte>},
    {"idle_timeout", ReadTimeout<&L::idle_timeout>},
    {"drain_timeout", ReadDrain<&L::drain_timeout>},
    {"drain_delay", ReadDrain<&L::drain_delay>},
}};

constexpr std::array<ConfigKey<Config::Paths>, 2> kPathsKeys = {{
    {"ignore_case", [](const ConfigValue& v, Config::Paths& p) { Put(p.ignore_case, v.Bool()); }},
    {"encoded_slashes", [](const ConfigValue& v,
                           Config::Paths& p) { Put(p.encoded_slashes, v.OneOf(kEncodedSlashes)); }},
}};

using Format = Config::Log::Format;
using Level = Config::Log::Level;
constexpr std::array<Choice<Format>, 2> kFormats = {
    {{"text", Format::kText}, {"json", Format::kJson}}};
constexpr std::array<Choice<Level>, 4> kLevels = {{{"debug", Level::kDebug},
                                                   {"info", Level::kInfo},
                                                   {"warning", Level::kWarning},
                                                   {"error", Level::kError}}};
constexpr std::array<ConfigKey<Config::Log>, 2> kLogKeys = {{
    {"format", [](const ConfigValue& v, Config::Log& l) { Put(l.format, v.OneOf(kFormats)); }},
    {"level", [](const ConfigValue& v, Config::Log& l) { Put(l.level, v.OneOf(kLevels)); }},
}};

}  // namespace

void ReadPaths(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kPathsKeys, draft.config.paths);
}

void ReadResponses(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kResponsesKeys, draft.config.responses);
}

void ReadApi(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kApiKeys, draft.config.api);
}

void ReadResp(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kRespKeys, draft.config.resp);
}

void ReadLimits(const ConfigValue& value, ConfigDraft& draft) {
  LimitsDraft limits;
  ReadSection(value, kLimitsKeys, limits);
  if (limits.target_bytes_node == nullptr) {
    limits.target_bytes = std::min(limits.target_bytes, limits.header_bytes);
  } else if (limits.target_bytes > limits.header_bytes) {
    const Where where{.parent = &value.where(), .key = "target_bytes"};
    value.context().Error(limits.target_bytes_node->at, where,
                          "is more than `header_bytes`, which includes the request target; raise "
                          "`header_bytes` to at least as much");
  }
  if (limits.buffer_bytes < limits.body_bytes + limits.header_bytes) {
    value.Error(
        "`buffer_bytes` is less than `body_bytes` and `header_bytes` together, so that a "
        "request of that size could never be read; raise `buffer_bytes`");
  }
  draft.config.limits = limits;
}

void ReadLog(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kLogKeys, draft.config.log);
}

void AppendServerKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("paths", kPathsKeys));
  sections.push_back(KeysOf("responses", kResponsesKeys));
  sections.push_back(KeysOf("api", kApiKeys));
  sections.push_back(KeysOf("resp", kRespKeys));
  sections.push_back(KeysOf("limits", kLimitsKeys));
  sections.push_back(KeysOf("log", kLogKeys));
}

}  // namespace tidegate
