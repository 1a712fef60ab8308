// SPDX-License-Identifier: Apache-2.0
// routes: which requests go where, and what is changed of them on the way.
#include <algorithm>
#include <memory_resource>
#include <unordered_map>

#include "rules/config_gateway.hpp"
#include "rules/match_cover.hpp"
#include "rules/nearest.hpp"
#include "rules/path.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMaxPlainPath = 2'048;

/// A route's keys as they were read; `nodes` tell what was written, good or bad.
struct RouteDraft {
  RouteSpec spec;
  struct Nodes {
    const YamlNode* id = nullptr;
    const YamlNode* upstream = nullptr;
    const YamlNode* rewrite = nullptr;
  } nodes;
};

void ReadId(const ConfigValue& value, RouteDraft& draft) {
  draft.nodes.id = &value.node();
  auto id = value.Text("a short name");
  if (!id) return;
  if (!IsId(*id)) return value.Error(kIdGrammar);
  draft.spec.id = *std::move(id);
}

/// Whether there is an upstream of that name is known at the end of the file.
void ReadUpstream(const ConfigValue& value, RouteDraft& draft) {
  draft.nodes.upstream = &value.node();
  auto name = value.Text("the name of one of `upstreams`");
  if (!name) return;
  if (!IsId(*name)) return value.Error(kIdGrammar);
  draft.spec.upstream = *std::move(name);
}

struct RewriteDraft {
  RouteSpec::Rewrite rewrite;
  const YamlNode* prefix = nullptr;
  const YamlNode* with = nullptr;
};

/// Empty: told what is wrong.
std::string ReadPlainPath(const ConfigValue& value) {
  const auto text = value.Text("a path, as in `/v1`");
  if (!text) return {};
  if (!text->starts_with('/') || text->size() > kMaxPlainPath) {
    value.Error("should be a path that begins with `/`, of at most 2,048 characters");
    return {};
  }
  if (text->find("/:") != std::string::npos || text->find('*') != std::string::npos) {
    value.Error("is a plain path, without `*` and parameters: write only how paths begin");
    return {};
  }
  std::pmr::monotonic_buffer_resource memory;
  const auto form = NormalizePath(*text, Slashes::kMerge, memory);
  if (!form) {
    value.Error(Ticked(*text) + " is not a path: " + std::string(Message(form.error())));
    return {};
  }
  std::string normal{*form};
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  if (normal != *text) {
    value.Error("paths are changed in their normal form, without a final `/`: write " +
                Ticked(normal));
    return {};
  }
  return normal;
}

constexpr std::array<ConfigKey<RewriteDraft>, 2> kRewriteKeys = {{
    {"prefix",
     [](const ConfigValue& v, RewriteDraft& d) {
       d.prefix = &v.node();
       d.rewrite.prefix = ReadPlainPath(v);
     }},
    {"with",
     [](const ConfigValue& v, RewriteDraft& d) {
       d.with = &v.node();
       d.rewrite.with = ReadPlainPath(v);
     }},
}};

/// A pattern that no path below the prefix fits makes the rewrite, or that pattern, a mistake.
void CheckPrefix(const ConfigValue& value, const RewriteDraft& draft, const MatchSpec& match) {
  MatchSpec below;
  below.paths = {(draft.rewrite.prefix == "/" ? "" : draft.rewrite.prefix) + "/**"};
  for (const std::string& path : match.paths) {
    MatchSpec pattern;
    pattern.paths = {path};
    if (Overlap(pattern, below)) continue;
    const Where where{.parent = &value.where(), .key = "prefix"};
    value.context().Error(draft.prefix->at, where,
                          "no path that " + Ticked(path) + " matches begins with " +
                              Ticked(draft.rewrite.prefix) + ", so this would never apply to it");
  }
  for (const MatchSpec& alternative : match.any) CheckPrefix(value, draft, alternative);
}

void ReadRewrite(const ConfigValue& value, RouteSpec& route) {
  RewriteDraft draft;
  ReadSection(value, kRewriteKeys, draft);
  if (!value.is_map()) return;
  if (draft.prefix == nullptr || draft.with == nullptr) {
    return value.Error("needs `prefix` and `with`, as in `{ prefix: /v1, with: / }`");
  }
  if (draft.rewrite.prefix.empty() || draft.rewrite.with.empty()) return;
  if (draft.rewrite.prefix == draft.rewrite.with) {
    return value.Error("has the same `prefix` and `with`, so that it would change nothing");
  }
  CheckPrefix(value, draft, route.match);
  route.rewrite = std::move(draft.rewrite);
}

constexpr std::array<std::string_view, 2> kHostWords = {"preserve", "target"};

void ReadHost(const ConfigValue& value, RouteDraft& draft) {
  const auto text = value.Text("`preserve`, `target` or a name");
  if (!text) return;
  RouteSpec& route = draft.spec;
  if (*text == kHostWords[0]) {
    route.host = RouteSpec::Host::kPreserve;
  } else if (*text == kHostWords[1]) {
    route.host = RouteSpec::Host::kTarget;
  } else if (auto host = ReadHostPort(value)) {
    const std::string hint = DidYouMean(*text, kHostWords);
    if (!hint.empty()) value.Warning("sends the name " + Ticked(*host) + " to upstreams" + hint);
    route.host = RouteSpec::Host::kFixed;
    route.host_name = *std::move(host);
  }
}

constexpr std::array<ConfigKey<RouteDraft>, 11> kRouteKeys = {{
    {"id", ReadId},
    {"match", [](const ConfigValue& v, RouteDraft& d) { ReadMatch(v, d.spec.match); }},
    {"upstream", ReadUpstream},
    {"rewrite", [](const ConfigValue& v, RouteDraft& d) { d.nodes.rewrite = &v.node(); }},
    {"request_headers",
     [](const ConfigValue& v, RouteDraft& d) {
       ReadHeaderEdits(v, Direction::kRequest, d.spec.request_headers);
     }},
    {"response_headers",
     [](const ConfigValue& v, RouteDraft& d) {
       ReadHeaderEdits(v, Direction::kResponse, d.spec.response_headers);
     }},
    {"denial", [](const ConfigValue& v, RouteDraft& d) { ReadDenial(v, d.spec.denial); }},
    {"host", ReadHost},
    {"response_timeout",
     [](const ConfigValue& v, RouteDraft& d) {
       ReadMillis<&RouteSpec::response_timeout, 10, 24 * kHourMs>(v, d.spec);
     }},
    {"body_bytes",
     [](const ConfigValue& v, RouteDraft& d) { Put(d.spec.body_bytes, ReadBodyBytes(v)); }},
    {"encoded_slashes",
     [](const ConfigValue& v, RouteDraft& d) {
       Put(d.spec.encoded_slashes, v.OneOf(kEncodedSlashes));
     }},
}};

/// Where each id stands.
struct IdPlace {
  std::size_t index = 0;
  Position at;
};
using RouteIds = std::unordered_map<std::string, IdPlace>;

void ReadRoute(const ConfigValue& value, RouteIds& ids, ConfigDraft& config) {
  RouteDraft draft;
  ReadSection(value, kRouteKeys, draft);
  if (!value.is_map()) return;
  if (draft.nodes.upstream == nullptr) {
    value.Error("needs an `upstream`, which says where its requests go");
  }
  if (draft.nodes.rewrite != nullptr) {
    const Where where{.parent = &value.where(), .key = "rewrite"};
    ReadRewrite(ConfigValue(value.context(), *draft.nodes.rewrite, where), draft.spec);
  }
  const std::size_t index = value.where().index;
  if (!draft.spec.id.empty()) {
    const auto [first, fresh] = ids.emplace(draft.spec.id, IdPlace{index, draft.nodes.id->at});
    if (!fresh) {
      const Where where{.parent = &value.where(), .key = "id"};
      value.context().Error(draft.nodes.id->at, where,
                            Ticked(draft.spec.id) + " is the id of two routes; the first is on " +
                                LineOf(first->second.at, draft.nodes.id->at));
    }
  }
  draft.spec.at = value.at();
  config.config.routes.push_back(std::move(draft.spec));
  config.places.routes.push_back(
      {index, draft.nodes.upstream != nullptr ? draft.nodes.upstream->at : Position{}});
}

/// `api-3`, for the third route of the file; the upstream's name is cut where it would be too long.
std::string MakeId(std::string_view upstream, std::size_t index) {
  const std::string place = "-" + std::to_string(index + 1);
  return std::string{upstream.substr(0, kMaxId - place.size())} + place;
}

void NameTheRest(const ConfigValue& value, const RouteIds& ids, ConfigDraft& draft) {
  for (std::size_t i = 0; i < draft.config.routes.size(); ++i) {
    RouteSpec& route = draft.config.routes[i];
    if (!route.id.empty() || route.upstream.empty()) continue;
    route.id = MakeId(route.upstream, draft.places.routes[i].index);
    const auto taken = ids.find(route.id);
    if (taken == ids.end()) continue;
    const Where list{.parent = &value.where(), .key = {}, .index = taken->second.index};
    const Where where{.parent = &list, .key = "id"};
    value.context().Error(taken->second.at, where,
                          Ticked(route.id) + " is what the route on " +
                              LineOf(route.at, taken->second.at) +
                              " is called, since it has no id; choose another one, or give it one");
  }
}

}  // namespace

void ReadRoutes(const ConfigValue& value, ConfigDraft& draft) {
  RouteIds ids;
  if (value.is_list() && !value.node().children.empty()) draft.places.route_list = value.at();
  value.EachItem([&](const ConfigValue& item) { ReadRoute(item, ids, draft); });
  NameTheRest(value, ids, draft);
}

void AppendRouteKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("route", kRouteKeys));
  sections.push_back(KeysOf("rewrite", kRewriteKeys));
}

}  // namespace tidegate
