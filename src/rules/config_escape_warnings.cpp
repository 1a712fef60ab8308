// SPDX-License-Identifier: Apache-2.0
// Warnings about requests that escape the rules that seem to limit them.
#include <algorithm>
#include <array>
#include <deque>

#include "rules/ascii.hpp"
#include "rules/config_sections.hpp"
#include "rules/config_warnings.hpp"
#include "rules/match_cover.hpp"
#include "rules/rule_lookup.hpp"

namespace tidegate {
namespace {

constexpr std::string_view kExampleRule = "`- {id: ..., per: client_ip, limit: ...}`";

void WarnAt(ReadContext& context, const Position& at, std::string where, std::string_view message) {
  context.Add(Problem::Severity::kWarning, at, std::move(where), message);
}

std::string Entry(std::string_view list, std::size_t index, std::string_view key = {}) {
  return std::string(list) + "[" + std::to_string(index) + "]" + std::string(key);
}

/// Returns true if clients choose the value of a header. If there are trusted proxies, they write
/// their own headers.
bool IsChosen(const Config& config, std::string_view header) {
  constexpr std::array<std::string_view, 5> kOfProxies = {
      "forwarded", "x-real-ip", "x-client-ip", "true-client-ip", "x-original-forwarded-for"};
  if (config.client_ip.policy.trusted_proxies.empty()) return true;
  return !header.starts_with("x-forwarded-") &&
         std::ranges::find(kOfProxies, header) == kOfProxies.end();
}

/// Returns the first header by which a client chooses whether it matches; empty if no header does.
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

/// Rules that apply or not as the client likes. Returns false if they could not all be compared.
bool WarnAboutChosenHeaders(const Config& config, const ConfigPlaces& places,
                            ReadContext& context) {
  RuleLookup others;
  for (const RuleSpec& rule : config.rules) {
    if (IsEnforced(rule) && ChosenHeader(config, rule.match).empty()) others.Add(rule.match);
  }
  for (std::size_t i = 0; i < config.rules.size() && !context.full(); ++i) {
    const RuleSpec& rule = config.rules[i];
    const std::string_view header = ChosenHeader(config, rule.match);
    if (!IsEnforced(rule) || header.empty()) continue;
    if (others.AnyCovers(WithoutChosen(config, rule.match)) || others.exhausted()) continue;
    WarnAt(context, places.rules[i].match, Entry("rules", places.rules[i].index, ".match"),
           "a client chooses the header `" + std::string(header) +
               "`, and so whether this rule limits it; put an enforced rule beside it that matches "
               "at least the same requests without that header, e.g. " +
               std::string(kExampleRule));
  }
  return !others.exhausted();
}

/// Entries of `exempt` by which clients exempt themselves.
void WarnAboutChosenExemptions(const Config& config, const ConfigPlaces& places,
                               ReadContext& context) {
  for (std::size_t i = 0; i < config.exempt.size() && !context.full(); ++i) {
    const std::string_view header = ChosenHeader(config, config.exempt[i]);
    if (header.empty() || !config.exempt[i].client_ips.empty()) continue;
    WarnAt(context, places.exempt[i], Entry("exempt", i),
           "a client that sends the header `" + std::string(header) +
               "` passes every rule; add `client_ip` to say whose header counts");
  }
}

/// The parts of a match, each with one host, path, method and alternative: different rules may
/// cover them. The match itself if there are too many.
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

/// Routes with requests that no rule counts. Returns false if they could not all be compared.
bool WarnAboutUnlimitedRoutes(const Config& config, const ConfigPlaces& places,
                              ReadContext& context) {
  std::vector<const MatchSpec*> specs;  // Limited, or exempted or denied on purpose.
  for (const RuleSpec& rule : config.rules) {
    if (IsEnforced(rule)) specs.push_back(&rule.match);
  }
  for (const MatchSpec& match : config.exempt) specs.push_back(&match);
  for (const MatchSpec& match : config.deny) specs.push_back(&match);
  RuleLookup decided;
  for (const MatchSpec* const spec : specs) decided.Add(*spec);
  // If other entries decide about all exceptions of a spec, all that it matches is decided.
  std::deque<MatchSpec> widened;
  for (const MatchSpec* const spec : specs) {
    const auto covered = [&](const MatchSpec& exception) { return decided.AnyCovers(exception); };
    if (spec->none.empty() || !std::ranges::all_of(spec->none, covered)) continue;
    widened.push_back(*spec);
    widened.back().none.clear();
  }
  for (const MatchSpec& spec : widened) decided.Add(spec);
  for (std::size_t i = 0; i < config.routes.size() && !context.full(); ++i) {
    const RouteSpec& route = config.routes[i];
    const bool covered = std::ranges::all_of(
        Parts(route.match), [&](const MatchSpec& part) { return decided.AnyCovers(part); });
    if (covered || decided.exhausted()) continue;
    WarnAt(context, route.at, Entry("routes", places.routes[i].index),
           "requests of route `" + route.id +
               "` may match no enforced rule, and then pass unlimited; add a rule that matches all "
               "of them, e.g. " +
               std::string(kExampleRule));
  }
  return !decided.exhausted();
}

/// Without a gateway nobody knows which requests are asked about: any may come.
void WarnAboutUnlimitedRequests(const Config& config, const ConfigPlaces& places,
                                ReadContext& context) {
  bool enforced = false;
  for (const RuleSpec& rule : config.rules) {
    if (!IsEnforced(rule)) continue;
    if (Covers(rule.match, {})) return;
    enforced = true;
  }
  if (!enforced) return;
  WarnAt(context, places.rule_list, "rules",
         "every enforced rule has a `match`, so requests that match none of them pass unlimited; "
         "add a rule without `match`, e.g. " +
             std::string(kExampleRule));
}

/// Returns true if `text` contains `word` with no letter or digit beside it.
bool HasWholeWord(std::string_view text, std::string_view word) {
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) {
      return true;
    }
  }
  return false;
}

/// Returns true if people seem to log in by a path: its last word has such a name. Some words must
/// stand alone: `/footprint` has `otp`, and `/tokenizer` has `token`.
bool IsLoginPath(std::string_view path) {
  constexpr std::array<std::string_view, 11> kWords = {"login",  "log-in",   "signin",   "sign-in",
                                                       "signup", "sign-up",  "password", "reset",
                                                       "verify", "register", "session"};
  constexpr std::array<std::string_view, 11> kShortWords = {
      "otp",   "2fa",    "mfa",       "auth",         "oauth",    "oauth2",
      "token", "tokens", "authorize", "authenticate", "authorise"};
  if (path.ends_with("/**")) path.remove_suffix(3);
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  std::string segment(path.substr(path.rfind('/') + 1));
  if (segment.starts_with(':')) return false;
  std::ranges::transform(segment, segment.begin(), [](char c) { return Lower(c); });
  if (const std::size_t at = segment.find("preset"); at != std::string::npos) segment.erase(at, 6);
  const auto has = [&](std::string_view word) { return segment.find(word) != std::string::npos; };
  return std::ranges::any_of(kWords, has) ||
         std::ranges::any_of(kShortWords,
                             [&](std::string_view word) { return HasWholeWord(segment, word); });
}

/// Returns the first login path of a match or of its alternatives; empty if it has none. Paths in
/// `none` do not matter: in another case they are not excluded, so more is limited, not less.
std::string_view LoginPathOf(const MatchSpec& match) {
  for (const std::string& path : match.paths) {
    if (IsLoginPath(path)) return path;
  }
  for (const MatchSpec& spec : match.any) {
    if (const std::string_view path = LoginPathOf(spec); !path.empty()) return path;
  }
  return {};
}

void WarnAboutCase(const Config& config, const ConfigPlaces& places, ReadContext& context) {
  if (config.paths.ignore_case) return;
  const auto warn = [&](std::string_view path, const Position& at, const std::string& where,
                        std::string_view outcome) {
    if (path.empty()) return;
    std::string upper(path);
    std::ranges::transform(upper, upper.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    WarnAt(context, at, where,
           "frameworks such as Express and ASP.NET ignore the case of paths, so a request to `" +
               upper + "` may reach `" + std::string(path) + "` and is not " +
               std::string(outcome) + "; write `paths: {ignore_case: true}`");
  };
  for (std::size_t i = 0; i < config.rules.size() && !context.full(); ++i) {
    if (!IsEnforced(config.rules[i])) continue;
    warn(LoginPathOf(config.rules[i].match), places.rules[i].match,
         Entry("rules", places.rules[i].index, ".match"), "counted by this rule");
  }
  for (std::size_t i = 0; i < config.deny.size() && !context.full(); ++i) {
    // Whatever the path is: somebody wants it closed.
    warn(config.deny[i].paths.empty() ? LoginPathOf(config.deny[i]) : config.deny[i].paths[0],
         places.deny[i], Entry("deny", i), "denied");
  }
}

bool HasUnderscore(std::string_view name) noexcept { return name.find('_') != name.npos; }

/// Headers that the gateway drops, because upstreams may confuse `_` with `-`.
void WarnAboutUnderscores(const Config& config, const ConfigPlaces& places, ReadContext& context) {
  if (config.listen.gateway.off() || config.gateway.underscores) return;
  const auto warn = [&](const Position& at, std::string where, std::string_view header) {
    WarnAt(context, at, std::move(where),
           "the gateway drops the header `" + std::string(header) +
               "`, because its name contains `_`, so neither rules nor upstreams see it; use a "
               "name with `-`, or write `gateway: {underscores: true}`");
  };
  const auto warn_of_match = [&](const MatchSpec& match, const Position& at,
                                 const std::string& where) {
    std::string_view dropped;
    EachHeader(match, [&](const MatchSpec::Header& header) {
      if (dropped.empty() && HasUnderscore(header.name)) dropped = header.name;
    });
    if (!dropped.empty()) warn(at, where, dropped);
  };
  for (std::size_t i = 0; i < config.rules.size() && !context.full(); ++i) {
    const RuleSpec& rule = config.rules[i];
    const ConfigPlaces::Rule& place = places.rules[i];
    for (const Per::Part& part : rule.per.parts) {
      for (const Source& source : part) {
        if (source.kind != Source::Kind::kHeader || !HasUnderscore(source.name)) continue;
        warn(place.per, Entry("rules", place.index, ".per"), source.name);
      }
    }
    warn_of_match(rule.match, place.match, Entry("rules", place.index, ".match"));
  }
  for (std::size_t i = 0; i < config.deny.size(); ++i) {
    warn_of_match(config.deny[i], places.deny[i], Entry("deny", i));
  }
  for (std::size_t i = 0; i < config.exempt.size(); ++i) {
    warn_of_match(config.exempt[i], places.exempt[i], Entry("exempt", i));
  }
}

}  // namespace

void WarnAboutEscapes(const Config& config, const ConfigPlaces& places, ReadContext& context) {
  bool compared = WarnAboutChosenHeaders(config, places, context);
  WarnAboutChosenExemptions(config, places, context);
  if (config.rules.empty()) {
    // WarnAbout says so.
  } else if (!config.listen.gateway.off()) {
    compared = WarnAboutUnlimitedRoutes(config, places, context) && compared;
  } else {
    WarnAboutUnlimitedRequests(config, places, context);
  }
  if (!compared) {
    WarnAt(context, {}, "rules",
           "too many overlapping rules to check; some warnings about unlimited requests may be "
           "missing");
  }
  WarnAboutCase(config, places, context);
  WarnAboutUnderscores(config, places, context);
}

}  // namespace tidegate
