// SPDX-License-Identifier: Apache-2.0
// upstreams: the servers behind the gateway; config_upstream_care.cpp reads how they are watched.
#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "rules/config_gateway.hpp"
#include "rules/target_url.hpp"

namespace tidegate {
namespace {

/// A balancer looks at all of them, for each request.
constexpr std::size_t kMaxTargets = 1'000;

using Target = UpstreamSpec::Target;
using Balance = UpstreamSpec::Balance;

struct TargetDraft {
  std::optional<Target> target;
  bool has_url = false;
  int weight = 1;
};

void ReadUrl(const ConfigValue& value, TargetDraft& draft) {
  draft.has_url = true;
  const auto text = value.Text("a server, as in `http://127.0.0.1:9001`");
  if (!text) return;
  auto target = ParseTargetUrl(*text);
  if (!target) return value.Error(target.error().message);
  draft.target = *std::move(target);
}

constexpr std::array<ConfigKey<TargetDraft>, 2> kTargetKeys = {{
    {"url", ReadUrl},
    {"weight", ReadNumber<&TargetDraft::weight, 1, 1'000, TargetDraft>},
}};

/// An upstream's keys as they were read.
struct UpstreamDraft {
  UpstreamSpec spec;
  const YamlNode* targets = nullptr;
  const YamlNode* tls = nullptr;
  std::set<std::tuple<bool, std::string, std::uint16_t>> seen = {};
};

void ReadTarget(const ConfigValue& value, UpstreamDraft& draft) {
  TargetDraft read;
  if (value.is_map()) {
    ReadSection(value, kTargetKeys, read);
    if (!read.has_url) value.Error("needs a `url`, as in `http://127.0.0.1:9001`");
  } else {
    ReadUrl(value, read);
  }
  if (!read.target) return;
  read.target->weight = read.weight;
  if (!draft.seen.emplace(read.target->tls, read.target->host, read.target->port).second) {
    return value.Error("stands here twice; to send more to one server give it a `weight`");
  }
  draft.spec.targets.push_back(*std::move(read.target));
}

void ReadTargets(const ConfigValue& value, UpstreamDraft& draft) {
  draft.targets = &value.node();
  if (value.is_list() && value.node().children.size() > kMaxTargets) {
    return value.Error("has more than 1,000 targets");
  }
  value.EachItemOrOne("is empty; name at least one server, as in `http://127.0.0.1:9001`",
                      [&](const ConfigValue& item) { ReadTarget(item, draft); });
}

void ReadMaxRequests(const ConfigValue& value, UpstreamDraft& draft) {
  if (IsOff(value)) {
    draft.spec.max_requests = 0;
  } else {
    ReadNumber<&UpstreamSpec::max_requests, 1, 1'000'000>(value, draft.spec);
  }
}

constexpr std::array<Choice<Balance>, 2> kBalances = {
    {{"round_robin", Balance::kRoundRobin}, {"least_requests", Balance::kLeastRequests}}};

/// A key that is a member of the spec, from `MinMs` to `MaxMs`.
template <Micros UpstreamSpec::*Member, std::int64_t MinMs, std::int64_t MaxMs>
void ReadTime(const ConfigValue& value, UpstreamDraft& draft) {
  ReadMillis<Member, MinMs, MaxMs>(value, draft.spec);
}

using U = UpstreamSpec;
constexpr std::array<ConfigKey<UpstreamDraft>, 14> kUpstreamKeys = {{
    {"targets", ReadTargets},
    {"balance",
     [](const ConfigValue& v, UpstreamDraft& d) { Put(d.spec.balance, v.OneOf(kBalances)); }},
    {"max_requests", ReadMaxRequests},
    {"keep_alive", [](const ConfigValue& v,
                      UpstreamDraft& d) { ReadNumber<&U::keep_alive, 0, 100'000>(v, d.spec); }},
    {"keep_alive_timeout", ReadTime<&U::keep_alive_timeout, 100, kHourMs>},
    {"connect_timeout", ReadTime<&U::connect_timeout, 10, kMinuteMs>},
    {"response_timeout", ReadTime<&U::response_timeout, 10, 24 * kHourMs>},
    {"idle_timeout", ReadTime<&U::idle_timeout, 100, 24 * kHourMs>},
    {"resolve", ReadTime<&U::resolve, kSecondMs, kHourMs>},
    {"accept_bare_lf",
     [](const ConfigValue& v, UpstreamDraft& d) { Put(d.spec.accept_bare_lf, v.Bool()); }},
    {"health", [](const ConfigValue& v, UpstreamDraft& d) { ReadHealth(v, d.spec); }},
    {"ejection", [](const ConfigValue& v, UpstreamDraft& d) { ReadEjection(v, d.spec); }},
    {"retries", [](const ConfigValue& v, UpstreamDraft& d) { ReadRetries(v, d.spec); }},
    {"tls",
     [](const ConfigValue& v, UpstreamDraft& d) {
       d.tls = &v.node();
       ReadUpstreamTls(v, d.spec);
     }},
}};

void JudgeUpstream(const ConfigValue& value, const UpstreamDraft& draft) {
  if (draft.targets == nullptr) {
    return value.Error("needs `targets`, as in `targets: [http://127.0.0.1:9001]`");
  }
  const std::vector<Target>& targets = draft.spec.targets;
  const bool https =
      std::any_of(targets.begin(), targets.end(), [](const Target& target) { return target.tls; });
  if (draft.tls == nullptr || https || targets.empty()) return;
  const Where where{.parent = &value.where(), .key = "tls"};
  value.context().Error(draft.tls->at, where,
                        "has no effect, since no target begins with `https://`; write one so, or "
                        "remove this");
}

}  // namespace

void ReadUpstreams(const ConfigValue& value, ConfigDraft& draft) {
  std::unordered_map<std::string, Position> seen;
  value.EachEntry([&](const std::string& name, const ConfigValue& key, const ConfigValue& entry) {
    if (!IsId(name)) return key.Error(kIdGrammar);
    const auto [first, fresh] = seen.emplace(name, key.at());
    if (!fresh) {
      return key.Error("stands here twice, first on " + LineOf(first->second, key.at()));
    }
    UpstreamDraft upstream;
    upstream.spec.name = name;
    ReadSection(entry, kUpstreamKeys, upstream);
    if (entry.is_map()) JudgeUpstream(entry, upstream);
    draft.config.upstreams.push_back(std::move(upstream.spec));
    draft.places.upstreams.push_back({name, key.at()});
  });
}

void AppendUpstreamKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("upstream", kUpstreamKeys));
  sections.push_back(KeysOf("target", kTargetKeys));
}

}  // namespace tidegate
