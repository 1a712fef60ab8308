// SPDX-License-Identifier: Apache-2.0
// What of listeners, routes and upstreams does not fit together.
#include <algorithm>
#include <unordered_set>

#include "rules/config_gateway.hpp"
#include "rules/nearest.hpp"
#include "rules/rule_lookup.hpp"

namespace tidegate {
namespace {

std::string RouteText(std::size_t index) { return "routes[" + std::to_string(index) + "]"; }

/// Listeners without routes would refuse everything, routes without a listener see nothing.
void CheckListener(const ConfigPlaces& places, ReadContext& context) {
  const bool routes = places.route_list.line > 0;
  if (routes && !places.gateway.meant) {
    context.Add(Problem::Severity::kError, places.route_list, "routes",
                "nothing would use them, since there is no gateway; write `gateway: 0.0.0.0:8080` "
                "under `listen`, or remove them");
  }
  if (!routes && places.gateway.meant) {
    context.Add(Problem::Severity::kError, places.gateway.at, "listen.gateway",
                "has no `routes`, so that every request would be answered with 404; write at least "
                "one, as in `routes: [{ upstream: api }]`");
  }
}

void CheckUpstreams(const ConfigDraft& draft, ReadContext& context) {
  std::vector<std::string_view> names;
  for (const ConfigPlaces::Upstream& upstream : draft.places.upstreams) {
    names.push_back(upstream.name);
  }
  const std::unordered_set<std::string_view> known(names.begin(), names.end());
  for (std::size_t i = 0; i < draft.config.routes.size() && !context.full(); ++i) {
    const std::string& name = draft.config.routes[i].upstream;
    if (name.empty() || known.contains(name)) continue;
    std::string hint = DidYouMean(name, names);
    if (hint.empty()) hint = names.empty() ? ": there are none" : ": write " + OneOf(names);
    context.Add(Problem::Severity::kError, draft.places.routes[i].upstream,
                RouteText(draft.places.routes[i].index) + ".upstream",
                Ticked(name) + " is not one of `upstreams`" + hint);
  }
}

void WarnAboutUnused(const Config& config, const ConfigPlaces& places, ReadContext& context) {
  std::unordered_set<std::string_view> used;
  for (const RouteSpec& route : config.routes) used.insert(route.upstream);
  for (const ConfigPlaces::Upstream& upstream : places.upstreams) {
    if (used.contains(upstream.name)) continue;
    context.Add(Problem::Severity::kWarning, upstream.at, "upstreams." + upstream.name,
                "no route uses it");
  }
  if (places.gateway.meant) return;
  const auto idle = [&](Position at, std::string where) {
    if (at.line == 0) return;
    context.Add(Problem::Severity::kWarning, at, std::move(where),
                "has no effect without `listen.gateway`");
  };
  idle(places.gateway_section, "gateway");
  idle(places.access_log, "access_log");
}

/// The first route that matches has a request, so one behind a wider one never gets any.
void WarnAboutUnreachable(const Config& config, ReadContext& context) {
  RuleLookup earlier;
  for (std::size_t i = 0; i < config.routes.size() && !context.full(); ++i) {
    const RouteSpec& route = config.routes[i];
    const MatchSpec* const wider = earlier.FindCover(route.match);
    if (wider != nullptr) {
      const auto found = std::find_if(config.routes.begin(), config.routes.end(),
                                      [&](const RouteSpec& r) { return &r.match == wider; });
      context.Add(Problem::Severity::kWarning, route.at, RouteText(i),
                  "is never used: the first route that matches has a request, and " +
                      Ticked(found->id) + " on " + LineOf(found->at, route.at) +
                      " matches all that this one does; put this one before it");
    }
    earlier.Add(route.match);
  }
  if (earlier.exhausted()) {
    context.Add(Problem::Severity::kWarning, {}, "routes",
                "these are too many routes that overlap to compare all of them; warnings about "
                "routes that are never used may be missing");
  }
}

}  // namespace

void CheckGateway(const ConfigDraft& draft, ReadContext& context) {
  CheckListener(draft.places, context);
  CheckUpstreams(draft, context);
}

void WarnAboutGateway(const Config& config, const ConfigPlaces& places, ReadContext& context) {
  WarnAboutUnused(config, places, context);
  WarnAboutUnreachable(config, context);
}

}  // namespace tidegate
