// SPDX-License-Identifier: Apache-2.0
#include "rules/config_warnings.hpp"

#include <algorithm>

#include "rules/config_gateway.hpp"
#include "rules/config_listen.hpp"
#include "rules/rule_lookup.hpp"

namespace tidegate {
namespace {

void Warn(ReadContext& context, Position at, std::string where, std::string_view message) {
  context.Add(Problem::Severity::kWarning, at, std::move(where), message);
}

std::string RuleKey(const ConfigPlaces::Rule& place, std::string_view key) {
  return "rules[" + std::to_string(place.index) + "]." + std::string{key};
}

bool IsFixedPath(std::string_view path) noexcept {
  return !path.ends_with("/**") && path.find("/:") == std::string_view::npos;
}

/// Whether a list of a match, or that of each of its alternatives, leaves no choice: `is_fixed` is
/// true for all of its entries.
template <class F>
bool IsFixed(const MatchSpec& match, std::vector<std::string> MatchSpec::*list, F is_fixed) {
  if (!(match.*list).empty() && std::ranges::all_of(match.*list, is_fixed)) return true;
  return !match.any.empty() && std::ranges::all_of(match.any, [&](const MatchSpec& spec) {
    return IsFixed(spec, list, is_fixed);
  });
}

/// Whether a client can come with another value of `source` whenever it likes, and still match.
bool CanInvent(const Config& config, const RuleSpec& rule, const Source& source) {
  const MatchSpec& match = rule.match;
  switch (source.kind) {
    case Source::Kind::kHeader:
    case Source::Kind::kCookie:
    case Source::Kind::kQuery:
      return true;
    case Source::Kind::kJwt:
      return config.identity.jwt && config.identity.jwt->unverified;
    case Source::Kind::kPath:
      return !IsFixed(match, &MatchSpec::paths, IsFixedPath);
    case Source::Kind::kMethod:
      return !IsFixed(match, &MatchSpec::methods, [](const std::string&) { return true; });
    case Source::Kind::kHost:
      return !IsFixed(match, &MatchSpec::hosts,
                      [](const std::string& host) { return !host.starts_with("*."); });
    case Source::Kind::kClientIp:
    case Source::Kind::kRoute:
    case Source::Kind::kConst:
      return false;
  }
  return false;
}

/// The first source by which a client can give itself a fresh key, or nullptr. One in any part is
/// enough: the key is all parts together.
const Source* Invented(const Config& config, const RuleSpec& rule) {
  for (const Per::Part& part : rule.per.parts) {
    for (const Source& source : part) {
      if (CanInvent(config, rule, source)) return &source;
    }
  }
  return nullptr;
}

bool IsByAddressAlone(const RuleSpec& rule) {
  return rule.per.parts.size() == 1 && rule.per.parts[0].size() == 1 &&
         rule.per.parts[0][0].kind == Source::Kind::kClientIp;
}

/// Tells people apart behind one address.
bool IsFiner(const RuleSpec& rule) {
  return std::any_of(rule.per.parts.begin(), rule.per.parts.end(), [](const Per::Part& part) {
    return std::any_of(part.begin(), part.end(), [](const Source& s) { return s.IsSecret(); });
  });
}

void WarnAboutCounting(const Config& config, const ConfigPlaces& places, ReadContext& context) {
  RuleLookup ceilings;
  RuleLookup finer;
  for (const RuleSpec& rule : config.rules) {
    if (rule.mode != Mode::kEnforce) continue;
    if (IsByAddressAlone(rule)) ceilings.Add(rule.match);
    if (IsFiner(rule)) finer.Add(rule.match);
  }
  for (std::size_t i = 0; i < config.rules.size() && !context.full(); ++i) {
    const RuleSpec& rule = config.rules[i];
    if (rule.mode != Mode::kEnforce) continue;  // Limits nobody yet.
    const Source* const invented = Invented(config, rule);
    if (invented != nullptr && !ceilings.AnyCovers(rule.match) && !ceilings.exhausted()) {
      Warn(context, places.rules[i].per, RuleKey(places.rules[i], "per"),
           "a client can get a fresh limit with every new `" + invented->Text() +
               "` that it makes up; put a wider rule beside it that counts by `client_ip` alone "
               "and matches at least the same");
    }
    if (IsByAddressAlone(rule) && !finer.AnyOverlaps(rule.match) && !finer.exhausted()) {
      Warn(context, places.rules[i].per, RuleKey(places.rules[i], "per"),
           "many people may share one address (NAT, mobile networks) and this limit with it; put "
           "a rule beside it that tells them apart, as by `header:x-api-key | client_ip`");
    }
  }
  if (ceilings.exhausted() || finer.exhausted()) {
    Warn(context, {}, "rules",
         "these are too many rules that overlap to compare all of them; warnings about whom they "
         "count may be missing");
  }
}

void WarnAboutCosts(const Config& config, const ConfigPlaces& places, ReadContext& context) {
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    const CostSpec& cost = config.rules[i].cost;
    if (cost.kind == CostSpec::Kind::kHeader && config.client_ip.policy.trusted_proxies.empty()) {
      Warn(
          context, places.rules[i].cost, RuleKey(places.rules[i], "cost"),
          "is believed from trusted proxies and from callers of the API only; requests that name a "
          "`peer` cost 1 while `client_ip.trusted_proxies` is empty");
    }
    if (cost.kind == CostSpec::Kind::kResponse && config.listen.gateway.off()) {
      Warn(context, places.rules[i].cost, RuleKey(places.rules[i], "cost"),
           "has no effect without a gateway, which would see the response; report the cost with "
           "`/v1/debit` instead");
    }
  }
}

/// `::/0` and `0.0.0.0/0`; IPv4 is the last 32 of 128 bits.
bool IsEverybody(const Network& network) noexcept {
  return network.bits() == 0 || (network.base().is_v4() && network.bits() <= 96);
}

void WarnAboutTrust(const Config& config, const ConfigPlaces& places, ReadContext& context) {
  const ClientAddressPolicy& policy = config.client_ip.policy;
  for (std::size_t i = 0; i < policy.trusted_proxies.size(); ++i) {
    if (!IsEverybody(policy.trusted_proxies[i])) continue;
    Warn(context, places.trusted_proxies[i], "client_ip.trusted_proxies[" + std::to_string(i) + "]",
         "trusts everybody, so that any client can claim any address; list your proxies only");
  }
  if (policy.hops > 0 && policy.trusted_proxies.empty()) {
    Warn(context, places.hops, "client_ip.hops",
         "has no effect without `trusted_proxies`: nobody is believed");
  }
}

}  // namespace

void WarnAbout(const Config& config, const ConfigPlaces& places, ReadContext& context) {
  if (config.rules.empty() && !config.api.inline_quotas) {
    Warn(context, {}, "rules", "there are none, so every request passes");
  }
  WarnAboutListen(config, places, context);
  WarnAboutTrust(config, places, context);
  WarnAboutCosts(config, places, context);
  WarnAboutCounting(config, places, context);
  WarnAboutEscapes(config, places, context);
  WarnAboutGateway(config, places, context);
}

}  // namespace tidegate
