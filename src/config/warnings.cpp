// SPDX-License-Identifier: Apache-2.0
// Warnings about limits that clients can evade, requests that escape the rules, addresses that many
// share, and trust that anyone can claim.
#include <algorithm>
#include <array>
#include <deque>

#include "base/ascii.hpp"
#include "config/sections.hpp"
#include "rules/match_cover.hpp"

namespace tidegate {
namespace {

/// Adds a warning about a section as a whole, even if the file does not have the section.
void WarnAtAll(const ConfigValue& root, std::string_view section, std::string_view message) {
  root.context().Add(Problem::Severity::kWarning, {}, std::string{section}, message);
}

/// Calls `visit(rule, value)` for each enforced rule. A shadow rule limits no client.
template <class Visit>
void EachEnforced(const ConfigValue& root, const Config& config, const Visit& visit) {
  const ConfigValue rules = root["rules"];
  for (std::size_t i = 0; i < config.rules.size() && !root.context().full(); ++i) {
    if (config.rules[i].mode == Mode::kEnforce) visit(config.rules[i], rules[i]);
  }
}

bool IsFixedPath(std::string_view path) noexcept {
  return !path.ends_with("/**") && !path.contains("/:");
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
    case Source::Kind::kQuery: return true;
    case Source::Kind::kJwt: return config.identity.jwt && config.identity.jwt->unverified;
    case Source::Kind::kPath: return !IsFixed(match, &MatchSpec::paths, IsFixedPath);
    case Source::Kind::kMethod:
      return !IsFixed(match, &MatchSpec::methods, [](const std::string&) { return true; });
    case Source::Kind::kHost:
      return !IsFixed(match, &MatchSpec::hosts,
                      [](const std::string& host) { return !host.starts_with("*."); });
    case Source::Kind::kClientIp:
    case Source::Kind::kRoute:
    case Source::Kind::kConst: break;
  }
  return false;
}

bool IsByAddressAlone(const RuleSpec& rule) {
  return rule.per.parts.size() == 1 && rule.per.parts[0].size() == 1 &&
         rule.per.parts[0][0].kind == Source::Kind::kClientIp;
}

void WarnAboutCounting(const ConfigValue& root, const Config& config) {
  RuleLookup ceilings;
  RuleLookup finer;
  EachEnforced(root, config, [&](const RuleSpec& rule, const ConfigValue&) {
    if (IsByAddressAlone(rule)) ceilings.Add(rule.match);
    // A secret distinguishes clients behind one address.
    if (rule.per.Find(&Source::IsSecret) != nullptr) finer.Add(rule.match);
  });
  EachEnforced(root, config, [&](const RuleSpec& rule, const ConfigValue& value) {
    // One such source is enough for a fresh key, because the key consists of all parts.
    const Source* const invented =
        rule.per.Find([&](const Source& source) { return CanInvent(config, rule, source); });
    if (invented != nullptr && !ceilings.AnyCovers(rule.match) && !ceilings.exhausted()) {
      value["per"].Warning("a client can get a fresh limit with every new `" + invented->Text() +
                           "` that it makes up; put a wider rule beside it that counts "
                           "by `client_ip` alone and matches at least the same");
    }
    if (IsByAddressAlone(rule) && !finer.AnyOverlaps(rule.match) && !finer.exhausted()) {
      value["per"].Warning(
          "many people may share one address (NAT, mobile networks) and this limit with it; put a "
          "rule beside it that distinguishes them, as by `header:x-api-key | client_ip`");
    }
  });
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

constexpr std::string_view kExampleRule = "`- {id: ..., per: client_ip, limit: ...}`";

/// Returns true if clients choose the value of a header: no trusted proxy writes it.
bool IsChosen(const Config& config, std::string_view header) {
  constexpr std::array<std::string_view, 5> kOfProxies = {
      "forwarded", "x-real-ip", "x-client-ip", "true-client-ip", "x-original-forwarded-for"};
  if (config.client_ip.policy.trusted_proxies.empty()) return true;
  return !header.starts_with("x-forwarded-") &&
         std::ranges::find(kOfProxies, header) == kOfProxies.end();
}

/// Returns the first header by which a client can choose to match or not; empty if there is none.
std::string_view ChosenHeader(const Config& config, const MatchSpec& match) {
  std::string_view chosen;
  EachHeader(match, [&](const MatchSpec::Header& header) {
    if (chosen.empty() && IsChosen(config, header.name)) chosen = header.name;
  });
  return chosen;
}

/// Returns `match` without the conditions that a client can fulfil as it likes.
MatchSpec WithoutChosen(const Config& config, MatchSpec match) {
  std::erase_if(match.headers,
                [&](const MatchSpec::Header& header) { return IsChosen(config, header.name); });
  for (MatchSpec& spec : match.any) spec = WithoutChosen(config, std::move(spec));
  if (std::ranges::any_of(match.any, [](const MatchSpec& spec) { return Covers(spec, {}); })) {
    match.any.clear();
  }
  std::erase_if(match.none,
                [&](const MatchSpec& spec) { return !ChosenHeader(config, spec).empty(); });
  return match;
}

/// Warns about rules that a client can evade by a header. Returns false if some were not compared.
bool WarnAboutChosenHeaders(const ConfigValue& root, const Config& config) {
  RuleLookup others;
  EachEnforced(root, config, [&](const RuleSpec& rule, const ConfigValue&) {
    if (ChosenHeader(config, rule.match).empty()) others.Add(rule.match);
  });
  EachEnforced(root, config, [&](const RuleSpec& rule, const ConfigValue& value) {
    const std::string_view header = ChosenHeader(config, rule.match);
    if (header.empty()) return;
    if (others.AnyCovers(WithoutChosen(config, rule.match)) || others.exhausted()) return;
    value["match"].Warning(
        "a client chooses the header `" + std::string(header) +
        "`, and so whether this rule limits it; put an enforced rule beside it that matches at "
        "least the same requests without that header, e.g. " +
        std::string(kExampleRule));
  });
  return !others.exhausted();
}

/// Warns about entries of `exempt` by which clients can exempt themselves.
void WarnAboutChosenExemptions(const ConfigValue& root, const Config& config) {
  for (std::size_t i = 0; i < config.exempt.size() && !root.context().full(); ++i) {
    const std::string_view header = ChosenHeader(config, config.exempt[i]);
    if (header.empty() || !config.exempt[i].client_ips.empty()) continue;
    root["exempt"][i].Warning(
        "a client that sends the header `" + std::string(header) +
        "` passes every rule; add `client_ip` to exempt only the clients at certain addresses");
  }
}

/// Splits a match into parts with one host, path, method and alternative each, because different
/// rules may cover them. Returns the match itself if there would be too many parts.
std::vector<MatchSpec> Parts(const MatchSpec& match) {
  constexpr std::size_t kMost = 256;
  const auto count = [](const auto& list) { return std::max<std::size_t>(list.size(), 1); };
  const std::size_t hosts = count(match.hosts);
  const std::size_t paths = count(match.paths);
  const std::size_t any = count(match.any);
  const std::size_t methods = count(match.methods);
  if (std::max({hosts, paths, any, methods}) > kMost || hosts * paths * any * methods > kMost) {
    return {match};
  }
  std::vector<MatchSpec> parts;
  for (std::size_t i = 0; i < hosts * paths * any * methods; ++i) {
    MatchSpec& part = parts.emplace_back(match);
    if (!match.hosts.empty()) part.hosts = {match.hosts[i % hosts]};
    if (!match.paths.empty()) part.paths = {match.paths[i / hosts % paths]};
    if (!match.any.empty()) part.any = {match.any[i / hosts / paths % any]};
    if (!match.methods.empty()) part.methods = {match.methods[i / hosts / paths / any]};
  }
  return parts;
}

/// Warns about routes with requests that no rule counts. Returns false if some were not compared.
bool WarnAboutUnlimitedRoutes(const ConfigValue& root, const Config& config) {
  std::vector<const MatchSpec*> specs;  // The matches of enforced rules, `exempt` and `deny`.
  EachEnforced(root, config,
               [&](const RuleSpec& rule, const ConfigValue&) { specs.push_back(&rule.match); });
  for (const MatchSpec& match : config.exempt) specs.push_back(&match);
  for (const MatchSpec& match : config.deny) specs.push_back(&match);
  RuleLookup decided;
  for (const MatchSpec* const spec : specs) decided.Add(*spec);
  // If other specs cover all exceptions of a spec, the spec counts as one without exceptions.
  std::deque<MatchSpec> widened;
  for (const MatchSpec* const spec : specs) {
    const auto covered = [&](const MatchSpec& exception) { return decided.AnyCovers(exception); };
    if (spec->none.empty() || !std::ranges::all_of(spec->none, covered)) continue;
    widened.push_back(*spec);
    widened.back().none.clear();
  }
  for (const MatchSpec& spec : widened) decided.Add(spec);
  for (std::size_t i = 0; i < config.routes.size() && !root.context().full(); ++i) {
    const RouteSpec& route = config.routes[i];
    const bool covered = std::ranges::all_of(
        Parts(route.match), [&](const MatchSpec& part) { return decided.AnyCovers(part); });
    if (covered || decided.exhausted()) continue;
    root["routes"][i].Warning("requests of route `" + route.id +
                              "` may match no enforced rule, and then pass unlimited; add a rule "
                              "that matches all of them, e.g. " +
                              std::string(kExampleRule));
  }
  return !decided.exhausted();
}

/// Warns if requests can match no enforced rule. Without a gateway, any may need a decision.
void WarnAboutUnlimitedRequests(const ConfigValue& root, const Config& config) {
  bool enforced = false;
  bool all_limited = false;
  EachEnforced(root, config, [&](const RuleSpec& rule, const ConfigValue&) {
    all_limited = all_limited || Covers(rule.match, {});
    enforced = true;
  });
  if (!enforced || all_limited) return;
  root["rules"].Warning(
      "every enforced rule has a `match`, so requests that match none of them pass unlimited; add "
      "a rule without `match`, e.g. " +
      std::string(kExampleRule));
}

/// Returns true if `text` contains `word` with no letter or digit beside it.
bool HasWholeWord(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !IsAlphanumeric(text[at - 1])) &&
        (end == text.size() || !IsAlphanumeric(text[end]))) {
      return true;
    }
  }
  return false;
}

/// Returns true if a path looks like a login: its last segment contains a word such as `login`.
/// Short words must stand alone, because `/footprint` contains `otp`.
bool IsLoginPath(std::string_view path) {
  constexpr std::array<std::string_view, 11> kWords = {"login",  "log-in",   "signin",   "sign-in",
                                                       "signup", "sign-up",  "password", "reset",
                                                       "verify", "register", "session"};
  constexpr std::array<std::string_view, 11> kShortWords = {
      "otp",   "2fa",    "mfa",       "auth",         "oauth",    "oauth2",
      "token", "tokens", "authorize", "authenticate", "authorise"};
  if (path.ends_with("/**")) path.remove_suffix(3);
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  std::string segment = Lowered(path.substr(path.rfind('/') + 1));
  if (segment.starts_with(':')) return false;
  if (const std::size_t at = segment.find("preset"); at != std::string::npos) segment.erase(at, 6);
  const auto has = [&](std::string_view word) { return segment.contains(word); };
  return std::ranges::any_of(kWords, has) ||
         std::ranges::any_of(kShortWords,
                             [&](std::string_view word) { return HasWholeWord(segment, word); });
}

/// Returns the first login path of a match or of its alternatives; empty if it has none. Paths in
/// `none` do not matter: in other letter case they are not excluded, so more requests are limited.
std::string_view LoginPathOf(const MatchSpec& match) {
  for (const std::string& path : match.paths) {
    if (IsLoginPath(path)) return path;
  }
  for (const MatchSpec& spec : match.any) {
    if (const std::string_view path = LoginPathOf(spec); !path.empty()) return path;
  }
  return {};
}

void WarnAboutCase(const ConfigValue& root, const Config& config) {
  if (config.paths.ignore_case) return;
  const auto warn = [](std::string_view path, const ConfigValue& place, std::string_view outcome) {
    if (path.empty()) return;
    place.Warning(
        "frameworks such as Express and ASP.NET ignore the case of paths, so a request to " +
        Backticked(Uppered(path)) + " may reach " + Backticked(path) + " and is not " +
        std::string(outcome) + "; write `paths: {ignore_case: true}`");
  };
  EachEnforced(root, config, [&](const RuleSpec& rule, const ConfigValue& value) {
    warn(LoginPathOf(rule.match), value["match"], "counted by this rule");
  });
  for (std::size_t i = 0; i < config.deny.size() && !root.context().full(); ++i) {
    // Any path counts here, not only that of a login, because the configuration denies it.
    const MatchSpec& match = config.deny[i];
    warn(match.paths.empty() ? LoginPathOf(match) : match.paths[0], root["deny"][i], "denied");
  }
}

/// Warns about headers that the gateway drops because upstreams may confuse `_` with `-`.
void WarnAboutUnderscores(const ConfigValue& root, const Config& config) {
  if (config.listen.gateway.off() || config.gateway.underscores) return;
  const auto warn = [](const ConfigValue& place, std::string_view header) {
    place.Warning("the gateway drops the header " + Backticked(header) +
                  ", because its name contains `_`, so neither rules nor upstreams see it; use a "
                  "name with `-`, or write `gateway: {underscores: true}`");
  };
  const auto warn_of_match = [&](const MatchSpec& match, const ConfigValue& place) {
    std::string_view dropped;
    EachHeader(match, [&](const MatchSpec::Header& header) {
      if (dropped.empty() && header.name.contains('_')) dropped = header.name;
    });
    if (!dropped.empty()) warn(place, dropped);
  };
  for (std::size_t i = 0; i < config.rules.size() && !root.context().full(); ++i) {
    const RuleSpec& rule = config.rules[i];
    for (const Per::Part& part : rule.per.parts) {
      for (const Source& source : part) {
        if (source.kind != Source::Kind::kHeader || !source.name.contains('_')) continue;
        warn(root["rules"][i]["per"], source.name);
      }
    }
    warn_of_match(rule.match, root["rules"][i]["match"]);
  }
  for (std::size_t i = 0; i < config.deny.size(); ++i) {
    warn_of_match(config.deny[i], root["deny"][i]);
  }
  for (std::size_t i = 0; i < config.exempt.size(); ++i) {
    warn_of_match(config.exempt[i], root["exempt"][i]);
  }
}

/// Warns about requests that escape the rules that seem to limit them.
void WarnAboutEscapes(const ConfigValue& root, const Config& config) {
  bool compared = WarnAboutChosenHeaders(root, config);
  WarnAboutChosenExemptions(root, config);
  if (config.listen.gateway.off()) {
    WarnAboutUnlimitedRequests(root, config);
  } else if (!config.rules.empty()) {
    compared = WarnAboutUnlimitedRoutes(root, config) && compared;
  }
  if (!compared) {
    WarnAtAll(root, "rules",
              "too many overlapping rules to check; some warnings about unlimited requests may be "
              "missing");
  }
  WarnAboutCase(root, config);
  WarnAboutUnderscores(root, config);
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
