// SPDX-License-Identifier: Apache-2.0
// overrides: other limits for some identities of a rule.
#include <algorithm>
#include <limits>
#include <map>
#include <memory_resource>
#include <utility>

#include "config/sections.hpp"
#include "identity/identity.hpp"
#include "identity/path.hpp"
#include "identity/request_path.hpp"
#include "rules/limit_text.hpp"

namespace tidegate {
namespace {

constexpr auto kOverrideFields = Fields({
    Later<QuotaSpec>("identity",
                     ValueType{R"({"anyOf": [{"type": ["string", "number", "boolean"]},
        {"type": "object", "minProperties": 1, "additionalProperties": {"type": ["string", "number", "boolean"]}}]})",
                               "a text, or a map from source to text"},
                     "The value of the rule's first source, or a map from source to value, one for "
                     "each part of the key.")
        .Required("needs an `identity`, to which it applies"),
    Custom<ReadLimit>("limit", kLimitType,
                      "The limit of that identity; the period may differ from the rule's.")
        .Required("needs a `limit`, as in `limit: 100/s`"),
    Integer<&QuotaSpec::burst>("burst", 1, std::numeric_limits<std::int64_t>::max(),
                               "The burst of that identity.")
        .Otherwise("its limit's count, not the rule's burst"),
});
constexpr Section<QuotaSpec> kOverrideTable("override", kOverrideFields);

/// Returns why no request can ever have this value of `source`; empty if a request can. The text
/// does not show the value of a secret source.
std::string WhyNever(const Source& source, const std::string& value) {
  std::pmr::monotonic_buffer_resource memory;
  if (value.empty()) return "is empty, and no identity is empty";
  if (value.size() > kMaxIdentityValue) return "is longer than 8 KiB";
  if (source.kind == Source::Kind::kClientIp && !Address::Parse(value)) {
    return "should be one IP address, as in `203.0.113.7`";
  }
  if (source.kind == Source::Kind::kPath) {
    const auto read = ReadRequestPath(value, {.encoded_slashes = EncodedSlashes::kMatch}, memory);
    if (!read) return "should be a path, as in `/v1/login`";
    if (read->lenient != value) {
      return "differs from the path that requests are counted by: write `" +
             std::string{read->lenient} + "`";
    }
  }
  if (source.kind == Source::Kind::kHost) {
    const auto normal = NormalizeHost(value, memory);
    if (!normal || *normal != value) return "should be a host in lower case without its port";
  }
  return {};
}

bool NeedsValue(const Per::Part& part) noexcept {
  return part.front().kind != Source::Kind::kConst;
}

void ReadIdentityValue(const ConfigValue& value, const Source& source, std::string name,
                       std::string_view should_be, std::vector<OverrideSpec::Value>& values) {
  auto text = value.Text(should_be);
  if (!text) return;
  if (const std::string why = WhyNever(source, *text); !why.empty()) return value.Error(why);
  if (text->contains('*')) {
    value.Warning(
        "`*` is matched literally, so no other identity has this limit; overrides name one "
        "identity each: write one for each, or a rule of its own with a `match`");
  }
  values.push_back({std::move(name), *std::move(text)});
}

/// Reads a map from source to value, with one value for each part of the key.
void ReadIdentityMap(const ConfigValue& identity, const Per& per,
                     std::vector<OverrideSpec::Value>& values) {
  std::vector<bool> taken(per.parts.size());  // True: the part of the key has a value.
  identity.EachEntry([&](const std::string& key, const ConfigValue& key_value,
                         const ConfigValue& value) {
    const auto source = Source::Parse(key);
    if (!source) return key_value.Error(source.error().message);
    const auto part = std::ranges::find_if(per.parts, [&](const Per::Part& alternatives) {
      return std::ranges::find(alternatives, *source) != alternatives.end();
    });
    if (part == per.parts.end()) {
      return key_value.Error("the rule does not count by `" + source->Text() + "` but by " +
                             per.Text());
    }
    const auto place = static_cast<std::size_t>(part - per.parts.begin());
    if (taken[place]) {
      return key_value.Error("this part of the key has another value already; remove one of them");
    }
    taken[place] = true;
    ReadIdentityValue(value, *source, source->Text(), "a text", values);
  });
  for (std::size_t i = 0; i < per.parts.size(); ++i) {
    if (taken[i] || !NeedsValue(per.parts[i])) continue;
    identity.Error("names no value for `" + Per{{per.parts[i]}}.Text() + "`");
  }
}

/// Reads one override's identity into one value per part of the rule's key.
std::vector<OverrideSpec::Value> ReadIdentity(const ConfigValue& identity, const Per& per) {
  std::vector<OverrideSpec::Value> values;
  const auto needed = std::ranges::count_if(per.parts, NeedsValue);
  if (needed == 0) {
    identity.Error("this rule counts all requests together, so no identity can have its own limit");
  } else if (identity.is_map()) {
    ReadIdentityMap(identity, per, values);
  } else if (needed > 1) {
    identity.Error("this rule counts " + per.Text() +
                   " together: name a value of each, as in `{ client_ip: 203.0.113.7, ... }`");
  } else {
    const auto part = std::ranges::find_if(per.parts, NeedsValue);
    ReadIdentityValue(identity, part->front(), {},
                      "an identity: a text, or a map from source to value", values);
  }
  return values;
}

/// An identity in a form that is equal for equal identities, however they are written.
using Canonical = std::vector<std::pair<std::string, std::string>>;

Canonical CanonicalOf(const std::vector<OverrideSpec::Value>& values, const Per& per) {
  Canonical canonical;
  for (const OverrideSpec::Value& value : values) {
    const auto part = std::ranges::find_if(per.parts, NeedsValue);
    std::string source = value.source.empty() ? part->front().Text() : value.source;
    const auto address =
        source == "client_ip" ? Address::Parse(value.value) : std::optional<Address>{};
    canonical.emplace_back(std::move(source), address ? address->Text() : value.value);
  }
  std::ranges::sort(canonical);
  return canonical;
}

std::optional<Quota> MakeOverrideQuota(const ConfigValue& value, const QuotaSpec& spec,
                                       const CostSpec& cost) {
  const ConfigValue burst = value["burst"];
  if (spec.limit == 0 || burst.invalid()) return std::nullopt;
  const auto quota = Quota::Make(spec);
  const ConfigValue place = burst.written() ? burst : value["limit"];
  if (!quota) return place.Invalid(quota.error().message);
  if (cost.kind == CostSpec::Kind::kFixed && cost.fixed > quota->capacity()) {
    return place.Invalid("the rule's cost of " + std::to_string(cost.fixed) +
                         " could never pass: the most that fits at once here is " +
                         std::to_string(quota->capacity()));
  }
  return *quota;
}

}  // namespace

constinit const SectionInfo kOverrideSection = kOverrideTable;

std::vector<OverrideSpec> ReadOverrides(const ConfigValue& value, const OverrideContext& rule) {
  std::vector<OverrideSpec> overrides;
  std::map<Canonical, Position> listed;
  value.EachItem([&](const ConfigValue& item) {
    QuotaSpec spec = rule.quota;
    spec.limit = spec.burst = 0;
    if (spec.algorithm == Algorithm::kConcurrency) spec.max_debt.reset();
    ReadSection(item, kOverrideTable, spec);
    if (!item.is_map()) return;
    const auto quota = MakeOverrideQuota(item, spec, rule.cost);
    const ConfigValue identity = item["identity"];
    // An error of `per` is reported at the rule.
    if (!identity.written() || rule.per.parts.empty()) return;
    auto values = ReadIdentity(identity, rule.per);
    if (!quota || values.empty()) return;
    const auto [first, is_new] = listed.emplace(CanonicalOf(values, rule.per), identity.at());
    if (!is_new) {
      // The value may be an API key, so it is not shown.
      return identity.Error("has an override already, on " + LineOf(first->second, identity.at()));
    }
    overrides.push_back({std::move(values), *quota, item.at()});
  });
  return overrides;
}

}  // namespace tidegate
