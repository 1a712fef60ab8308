// SPDX-License-Identifier: Apache-2.0
// Warnings about limits that clients can evade, addresses that many share, and trust that anyone
// can claim.
#include <algorithm>

#include "config/sections.hpp"
#include "rules/match_cover.hpp"

namespace tidegate {
namespace {

/// Adds a warning about a section as a whole, even if the file does not have the section.
void WarnAtAll(const ConfigValue& root, std::string_view section, std::string_view message) {
  root.context().Add(Problem::Severity::kWarning, {}, std::string{section}, message);
}

bool IsFixedPath(std::string_view path) noexcept {
  return !path.ends_with("/**") && path.find("/:") == std::string_view::npos;
}

/// Returns true if a list of a match, or the same list of each alternative, leaves no choice: it
/// has entries, and `is_fixed` is true for all of them.
template <class F>
bool IsFixed(const MatchSpec& match, std::vector<std::string> MatchSpec::*list, F is_fixed) {
  if (!(match.*list).empty() && std::ranges::all_of(match.*list, is_fixed)) return true;
  return !match.any.empty() && std::ranges::all_of(match.any, [&](const MatchSpec& spec) {
    return IsFixed(spec, list, is_fixed);
  });
}

/// Returns true if a client can send a new value of `source` at will and still match the rule.
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

/// Returns the first source by which a client can give itself a fresh key, or nullptr. One such
/// source in any part is enough, because the key consists of all parts.
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

/// Returns true if the rule distinguishes clients behind one address.
bool IsFiner(const RuleSpec& rule) {
  return std::ranges::any_of(rule.per.parts, [](const Per::Part& part) {
    return std::ranges::any_of(part, [](const Source& s) { return s.IsSecret(); });
  });
}

void WarnAboutCounting(const ConfigValue& root, const Config& config) {
  RuleLookup ceilings;
  RuleLookup finer;
  for (const RuleSpec& rule : config.rules) {
    if (rule.mode != Mode::kEnforce) continue;
    if (IsByAddressAlone(rule)) ceilings.Add(rule.match);
    if (IsFiner(rule)) finer.Add(rule.match);
  }
  for (std::size_t i = 0; i < config.rules.size() && !root.context().full(); ++i) {
    const RuleSpec& rule = config.rules[i];
    if (rule.mode != Mode::kEnforce) continue;  // A shadow rule limits no client.
    const Source* const invented = Invented(config, rule);
    if (invented != nullptr && !ceilings.AnyCovers(rule.match) && !ceilings.exhausted()) {
      root["rules"][i]["per"].Warning("a client can get a fresh limit with every new `" +
                                      invented->Text() +
                                      "` that it makes up; put a wider rule beside it that counts "
                                      "by `client_ip` alone and matches at least the same");
    }
    if (IsByAddressAlone(rule) && !finer.AnyOverlaps(rule.match) && !finer.exhausted()) {
      root["rules"][i]["per"].Warning(
          "many people may share one address (NAT, mobile networks) and this limit with it; put a "
          "rule beside it that distinguishes them, as by `header:x-api-key | client_ip`");
    }
  }
  if (ceilings.exhausted() || finer.exhausted()) {
    WarnAtAll(root, "rules",
              "too many overlapping rules to check; some warnings about `per` may be missing");
  }
}

void WarnAboutCosts(const ConfigValue& root, const Config& config) {
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    const CostSpec& cost = config.rules[i].cost;
    if (cost.kind == CostSpec::Kind::kHeader && config.client_ip.policy.trusted_proxies.empty()) {
      root["rules"][i]["cost"].Warning(
          "is accepted from trusted proxies and from callers of the API only; requests that name a "
          "`peer` cost 1 while `client_ip.trusted_proxies` is empty");
    }
    if (cost.kind == CostSpec::Kind::kResponse && config.listen.gateway.off()) {
      root["rules"][i]["cost"].Warning(
          "has no effect without a gateway, which reads the response; report the cost with "
          "`/v1/debit` instead");
    }
  }
}

/// Returns true for `::/0` and `0.0.0.0/0`. An IPv4 address is the last 32 of 128 bits.
bool IsEverybody(const Network& network) noexcept {
  return network.bits() == 0 || (network.base().is_v4() && network.bits() <= 96);
}

void WarnAboutTrust(const ConfigValue& root, const Config& config) {
  const ClientAddressPolicy& policy = config.client_ip.policy;
  for (std::size_t i = 0; i < policy.trusted_proxies.size(); ++i) {
    if (!IsEverybody(policy.trusted_proxies[i])) continue;
    root["client_ip"]["trusted_proxies"][i].Warning(
        "trusts every address, so that any client can claim any address; list your proxies only");
  }
  if (policy.hops > 0 && policy.trusted_proxies.empty()) {
    root["client_ip"]["hops"].Warning(
        "has no effect without `trusted_proxies`: no header is trusted");
  }
}

}  // namespace

void WarnAbout(const ConfigValue& root, const Config& config) {
  if (config.rules.empty() && !config.api.inline_quotas) {
    WarnAtAll(root, "rules", "no rules are configured, so every request passes");
  }
  WarnAboutListen(root, config);
  WarnAboutTrust(root, config);
  WarnAboutCosts(root, config);
  WarnAboutCounting(root, config);
  WarnAboutEscapes(root, config);
  WarnAboutGateway(root, config);
}

}  // namespace tidegate
