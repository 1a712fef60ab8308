// SPDX-License-Identifier: Apache-2.0
// Warnings about requests that escape the rules that seem to limit them.
#include <algorithm>
#include <array>
#include <deque>

#include "base/ascii.hpp"
#include "config/sections.hpp"
#include "rules/match_cover.hpp"

namespace tidegate {
namespace {

constexpr std::string_view kExampleRule = "`- {id: ..., per: client_ip, limit: ...}`";

/// Returns true if clients choose the value of a header. Trusted proxies, if there are any, write
/// the headers of proxies.
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

bool IsEnforced(const RuleSpec& rule) noexcept { return rule.mode == Mode::kEnforce; }

/// Warns about rules that a client can evade by its choice of a header. Returns false if not all
/// rules could be compared.
bool WarnAboutChosenHeaders(const ConfigValue& root, const Config& config) {
  RuleLookup others;
  for (const RuleSpec& rule : config.rules) {
    if (IsEnforced(rule) && ChosenHeader(config, rule.match).empty()) others.Add(rule.match);
  }
  for (std::size_t i = 0; i < config.rules.size() && !root.context().full(); ++i) {
    const RuleSpec& rule = config.rules[i];
    const std::string_view header = ChosenHeader(config, rule.match);
    if (!IsEnforced(rule) || header.empty()) continue;
    if (others.AnyCovers(WithoutChosen(config, rule.match)) || others.exhausted()) continue;
    root["rules"][i]["match"].Warning(
        "a client chooses the header `" + std::string(header) +
        "`, and so whether this rule limits it; put an enforced rule beside it that matches at "
        "least the same requests without that header, e.g. " +
        std::string(kExampleRule));
  }
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
  for (const RuleSpec& rule : config.rules) {
    if (IsEnforced(rule)) specs.push_back(&rule.match);
  }
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
  for (const RuleSpec& rule : config.rules) {
    if (!IsEnforced(rule)) continue;
    if (Covers(rule.match, {})) return;
    enforced = true;
  }
  if (!enforced) return;
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
/// Short words must stand alone, because `/footprint` contains `otp` and `/tokenizer` contains
/// `token`.
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
  const auto has = [&](std::string_view word) { return segment.find(word) != std::string::npos; };
  return std::ranges::any_of(kWords, has) ||
         std::ranges::any_of(kShortWords,
                             [&](std::string_view word) { return HasWholeWord(segment, word); });
}

/// Returns the first login path of a match or of its alternatives; empty if it has none. Paths in
/// `none` do not matter: in other letter case they are not excluded, which limits more requests,
/// never fewer.
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
  for (std::size_t i = 0; i < config.rules.size() && !root.context().full(); ++i) {
    if (!IsEnforced(config.rules[i])) continue;
    warn(LoginPathOf(config.rules[i].match), root["rules"][i]["match"], "counted by this rule");
  }
  for (std::size_t i = 0; i < config.deny.size() && !root.context().full(); ++i) {
    // Any path counts here, not only that of a login, because the configuration denies it.
    const MatchSpec& match = config.deny[i];
    warn(match.paths.empty() ? LoginPathOf(match) : match.paths[0], root["deny"][i], "denied");
  }
}

bool HasUnderscore(std::string_view name) noexcept { return name.find('_') != name.npos; }

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
      if (dropped.empty() && HasUnderscore(header.name)) dropped = header.name;
    });
    if (!dropped.empty()) warn(place, dropped);
  };
  for (std::size_t i = 0; i < config.rules.size() && !root.context().full(); ++i) {
    const RuleSpec& rule = config.rules[i];
    for (const Per::Part& part : rule.per.parts) {
      for (const Source& source : part) {
        if (source.kind != Source::Kind::kHeader || !HasUnderscore(source.name)) continue;
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

}  // namespace

void WarnAboutEscapes(const ConfigValue& root, const Config& config) {
  bool compared = WarnAboutChosenHeaders(root, config);
  WarnAboutChosenExemptions(root, config);
  if (config.rules.empty()) {
    // WarnAbout warns that there are no rules.
  } else if (!config.listen.gateway.off()) {
    compared = WarnAboutUnlimitedRoutes(root, config) && compared;
  } else {
    WarnAboutUnlimitedRequests(root, config);
  }
  if (!compared) {
    root.context().Add(Problem::Severity::kWarning, {}, "rules",
                       "too many overlapping rules to check; some warnings about unlimited "
                       "requests may be missing");
  }
  WarnAboutCase(root, config);
  WarnAboutUnderscores(root, config);
}

}  // namespace tidegate
