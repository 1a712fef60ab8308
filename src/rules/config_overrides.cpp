// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <memory_resource>
#include <utility>

#include "rules/config_sections.hpp"
#include "rules/identity.hpp"
#include "rules/limit_text.hpp"
#include "rules/path.hpp"
#include "rules/request_path.hpp"

namespace tidegate {
namespace {

struct OverrideDraft {
  const YamlNode* identity = nullptr;
  const YamlNode* limit_node = nullptr;
  const YamlNode* burst_node = nullptr;
  std::optional<LimitText> limit;
  std::optional<std::int64_t> burst;
};

void ReadLimit(const ConfigValue& value, OverrideDraft& draft) {
  draft.limit_node = &value.node();
  const auto text = value.Text("a count and a period, as in `100/s`");
  if (!text) return;
  const auto limit = LimitText::Parse(*text);
  if (!limit) return value.Error(limit.error().message);
  draft.limit = *limit;
}

constexpr std::array<ConfigKey<OverrideDraft>, 3> kOverrideKeys = {{
    {"identity", [](const ConfigValue& v, OverrideDraft& d) { d.identity = &v.node(); }},
    {"limit", ReadLimit},
    {"burst",
     [](const ConfigValue& v, OverrideDraft& d) {
       d.burst_node = &v.node();
       d.burst = v.Integer(1, std::numeric_limits<std::int64_t>::max());
     }},
}};

/// Why no request can ever have this value, or empty. Values of secret sources stay unsaid.
std::string WhyNever(const Source& source, const std::string& value) {
  std::pmr::monotonic_buffer_resource memory;
  if (value.empty()) return "is empty, and nobody has an empty identity";
  if (value.size() > kMaxIdentityValue) return "is longer than 8 KiB";
  if (source.kind == Source::Kind::kClientIp && !Address::Parse(value)) {
    return "should be one IP address, as in `203.0.113.7`";
  }
  if (source.kind == Source::Kind::kPath) {
    const auto read = ReadRequestPath(value, {.encoded_slashes = EncodedSlashes::kMatch}, memory);
    if (!read) return "should be a path, as in `/v1/login`";
    if (read->lenient != value) {
      return "is not how requests are counted: write `" + std::string{read->lenient} + "`";
    }
  }
  if (source.kind == Source::Kind::kHost) {
    const auto normal = NormalizeHost(value, memory);
    if (!normal || *normal != value) return "should be a host in lower case without its port";
  }
  return {};
}

void WarnAboutStar(const ConfigValue& value, std::string_view text) {
  if (text.find('*') == std::string_view::npos) return;
  value.Warning(
      "`*` is matched literally, so nobody else has this limit; overrides name one identity each: "
      "write one for each, or a rule of its own with a `match`");
}

bool NeedsValue(const Per::Part& part) noexcept {
  return part.front().kind != Source::Kind::kConst;
}

/// Reads one override's identity into one value per part of the rule's key.
class IdentityReader {
 public:
  IdentityReader(const ConfigValue& value, const Per& per)
      : value_(value), per_(per), taken_(per.parts.size(), 0) {}

  [[nodiscard]] std::vector<OverrideSpec::Value> Read() {
    const auto needed = std::count_if(per_.parts.begin(), per_.parts.end(), NeedsValue);
    if (needed == 0) {
      value_.Error("this rule counts all requests together, so nobody can have a limit of his own");
    } else if (value_.is_map()) {
      value_.EachEntry([this](const std::string& key, const ConfigValue& key_value,
                              const ConfigValue& value) { ReadEntry(key, key_value, value); });
      TellMissing();
    } else if (needed > 1) {
      value_.Error("this rule counts " + per_.Text() +
                   " together: name a value of each, as in `{ client_ip: 203.0.113.7, ... }`");
    } else {
      ReadPlain();
    }
    return std::move(values_);
  }

 private:
  void ReadPlain() {
    const auto part = std::find_if(per_.parts.begin(), per_.parts.end(), NeedsValue);
    auto text = value_.Text("an identity: a text, or a map from source to value");
    if (!text) return;
    if (std::string why = WhyNever(part->front(), *text); !why.empty()) return value_.Error(why);
    WarnAboutStar(value_, *text);
    values_.push_back({{}, *std::move(text)});
  }

  void ReadEntry(const std::string& key, const ConfigValue& key_value, const ConfigValue& value) {
    const auto source = Source::Parse(key);
    if (!source) return key_value.Error(source.error().message);
    const auto part =
        std::find_if(per_.parts.begin(), per_.parts.end(), [&](const Per::Part& alternatives) {
          return std::find(alternatives.begin(), alternatives.end(), *source) != alternatives.end();
        });
    if (part == per_.parts.end()) {
      return key_value.Error("the rule does not count by `" + source->Text() + "` but by " +
                             per_.Text());
    }
    int& taken = taken_[static_cast<std::size_t>(part - per_.parts.begin())];
    if (std::exchange(taken, 1) != 0) {
      return key_value.Error("another value is given for this part of the key already");
    }
    auto text = value.Text();
    if (!text) return;
    if (std::string why = WhyNever(*source, *text); !why.empty()) return value.Error(why);
    WarnAboutStar(value, *text);
    values_.push_back({source->Text(), *std::move(text)});
  }

  void TellMissing() const {
    for (std::size_t i = 0; i < per_.parts.size(); ++i) {
      if (taken_[i] == 0 && NeedsValue(per_.parts[i])) {
        value_.Error("names no value for `" + Per{{per_.parts[i]}}.Text() + "`");
      }
    }
  }

  const ConfigValue& value_;
  const Per& per_;
  std::vector<int> taken_;  ///< By part.
  std::vector<OverrideSpec::Value> values_;
};

/// The same for the same identity, however it is written.
using Canonical = std::vector<std::pair<std::string, std::string>>;

Canonical CanonicalOf(const std::vector<OverrideSpec::Value>& values, const Per& per) {
  Canonical canonical;
  for (const OverrideSpec::Value& value : values) {
    const auto part = std::find_if(per.parts.begin(), per.parts.end(), NeedsValue);
    std::string source = value.source.empty() ? part->front().Text() : value.source;
    const auto address =
        source == "client_ip" ? Address::Parse(value.value) : std::optional<Address>{};
    canonical.emplace_back(std::move(source), address ? address->Text() : value.value);
  }
  std::sort(canonical.begin(), canonical.end());
  return canonical;
}

std::optional<Quota> MakeQuota(const ConfigValue& value, const OverrideDraft& draft,
                               const OverrideContext& rule) {
  if (draft.limit_node == nullptr) value.Error("needs a `limit`, as in `limit: 100/s`");
  if (!draft.limit || (draft.burst_node != nullptr && !draft.burst)) return std::nullopt;
  const auto quota = Quota::Make(
      {.algorithm = rule.algorithm,
       .limit = draft.limit->count,
       .period = draft.limit->period,
       .burst = draft.burst.value_or(0),
       .ceiling = rule.ceiling,
       .max_debt = rule.algorithm == Algorithm::kConcurrency ? std::nullopt : rule.max_debt});
  const YamlNode& node = draft.burst_node != nullptr ? *draft.burst_node : *draft.limit_node;
  const Where where{.parent = &value.where(),
                    .key = draft.burst_node != nullptr ? "burst" : "limit"};
  if (!quota) {
    value.context().Error(node.at, where, quota.error().message);
    return std::nullopt;
  }
  if (rule.cost.kind == CostSpec::Kind::kFixed && rule.cost.fixed > quota->capacity()) {
    value.context().Error(node.at, where,
                          "the rule's cost of " + std::to_string(rule.cost.fixed) +
                              " could never pass: the most that fits at once here is " +
                              std::to_string(quota->capacity()));
    return std::nullopt;
  }
  return *quota;
}

}  // namespace

std::vector<OverrideSpec> ReadOverrides(const ConfigValue& value, const OverrideContext& rule) {
  std::vector<OverrideSpec> overrides;
  std::map<Canonical, Position> seen;
  value.EachItem([&](const ConfigValue& item) {
    OverrideDraft draft;
    ReadSection(item, kOverrideKeys, draft);
    if (!item.is_map()) return;
    const auto quota = MakeQuota(item, draft, rule);
    if (draft.identity == nullptr) return item.Error("needs an `identity`, whom it is for");
    if (rule.per.parts.empty()) return;  // Told at the rule.
    const Where where{.parent = &item.where(), .key = "identity"};
    const ConfigValue identity(item.context(), *draft.identity, where);
    auto values = IdentityReader(identity, rule.per).Read();
    if (!quota || values.empty()) return;
    const auto [first, fresh] = seen.emplace(CanonicalOf(values, rule.per), identity.at());
    if (!fresh) {
      // The value may be somebody's API key, so it is not shown.
      return identity.Error("has an override already, on " + LineOf(first->second, identity.at()));
    }
    overrides.push_back({std::move(values), *quota, item.at()});
  });
  return overrides;
}

void AppendOverrideKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("override", kOverrideKeys));
}

}  // namespace tidegate
