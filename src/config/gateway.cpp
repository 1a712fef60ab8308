// SPDX-License-Identifier: Apache-2.0
// gateway, access_log and routes: which requests go to which upstream, and how they are changed on
// the way; checks of the gateway as a whole.
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory_resource>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include "base/ascii.hpp"
#include "base/message_text.hpp"
#include "base/units.hpp"
#include "config/sections.hpp"
#include "identity/path.hpp"
#include "rules/match_cover.hpp"

namespace tidegate {
namespace {

constexpr std::int64_t kMaxGatewayBody = 1024 * kGibibyte;

using UnknownExpect = GatewaySpec::UnknownExpect;
constexpr auto kUnknownExpects =
    Words<UnknownExpect>({{"reject", UnknownExpect::kReject}, {"ignore", UnknownExpect::kIgnore}});

constexpr auto kGatewayFields = Fields({
    Value<&GatewaySpec::body_bytes, ReadBodyBytes>(
        "body_bytes", kBodyBytesType,
        "The longest body of a request. Bodies are streamed and not kept, so this is checked while "
        "they pass: an announced length is rejected at once, a chunked body only when it has grown "
        "too long.")
        .Default("off"),
    Bool<&GatewaySpec::merge_slashes>(
        "merge_slashes",
        "Whether `//` in a path is forwarded as `/`. Routes and rules see `/` in either case."),
    Bool<&GatewaySpec::underscores>(
        "underscores",
        "Whether header fields with `_` in their names are forwarded. Many servers read `_` as "
        "`-`, so `X_Api_Key` would reach them past a rule that counts by `x-api-key`; nginx drops "
        "them too."),
    OneOf<&GatewaySpec::unknown_expect>(
        "unknown_expect", kUnknownExpects,
        "What happens to a request whose `Expect` header is not `100-continue`: `reject` answers "
        "417, `ignore` forwards the request without that header. The API always rejects."),
    Size<&GatewaySpec::response_header_bytes>(
        "response_header_bytes", kKibibyte, kMebibyte,
        "Status line and header fields of a response from an upstream; a longer head is answered "
        "with 502. Heads beyond 16KiB need a larger buffer while they are read."),
    Integer<&GatewaySpec::response_header_count>("response_header_count", 1, 1'000,
                                                 "Header fields of a response from an upstream."),
});

constexpr std::array<std::string_view, 3> kLogWords = {"stdout", "stderr", "off"};

void WarnAboutUnused(const ConfigValue& root, const Config& config) {
  std::unordered_set<std::string_view> used;
  for (const RouteSpec& route : config.routes) used.insert(route.upstream);
  const ConfigValue upstreams = root["upstreams"];
  if (upstreams.written()) {
    upstreams.EachEntry([&](const std::string& name, const ConfigValue& key, const ConfigValue&) {
      if (used.contains(name)) return;
      root.context().Add(Problem::Severity::kWarning, key.at(), "upstreams." + name,
                         "no route uses it");
    });
  }
  if (IsOpened(root["listen"]["gateway"])) return;
  for (const std::string_view key : {"gateway", "access_log"}) {
    if (root[key].written()) root[key].Warning("has no effect without `listen.gateway`");
  }
}

/// Warns about routes that are never used, because an earlier route matches all their requests.
void WarnAboutUnreachable(const ConfigValue& routes, const Config& config) {
  ReadContext& context = routes.context();
  RuleLookup earlier;
  for (std::size_t i = 0; i < config.routes.size() && !context.full(); ++i) {
    const RouteSpec& route = config.routes[i];
    const MatchSpec* const wider = earlier.FindCover(route.match);
    if (wider != nullptr) {
      const auto found = std::ranges::find_if(
          config.routes, [&](const RouteSpec& r) { return &r.match == wider; });
      routes[i].Warning("is never used: the first route that matches serves a request, and " +
                        Backticked(found->id) + " on " + LineOf(found->at, route.at) +
                        " matches every request that this route matches; put this route first");
    }
    earlier.Add(route.match);
  }
  if (earlier.exhausted()) {
    context.Add(Problem::Severity::kWarning, {}, "routes",
                "too many overlapping routes to check; some warnings about routes that are never "
                "used may be missing");
  }
}

using Rewrite = RouteSpec::Rewrite;

constexpr std::size_t kMaxPlainPath = 2'048;

std::optional<std::string> ReadPlainPath(const ConfigValue& value) {
  const auto text = value.Text("a path, as in `/v1`");
  if (!text) return std::nullopt;
  if (!text->starts_with('/') || text->size() > kMaxPlainPath) {
    return value.Invalid("should be a path that begins with `/`, of at most 2,048 characters");
  }
  if (text->contains("/:") || text->contains('*')) {
    return value.Invalid(
        "should be a plain path without `*` and parameters: write only the beginning of the paths");
  }
  std::pmr::monotonic_buffer_resource memory;
  const auto form = NormalizePath(*text, Slashes::kMerge, memory);
  if (!form) {
    return value.Invalid(Backticked(*text) +
                         " is not a path: " + std::string(Message(form.error())));
  }
  std::string normal{*form};
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  if (normal != *text) {
    return value.Invalid("paths are changed in their normal form, without a final `/`: write " +
                         Backticked(normal));
  }
  return normal;
}

/// Reports path patterns that cannot begin with the prefix: one of the two is wrong.
void CheckPrefix(const ConfigValue& value, const Rewrite& rewrite, const MatchSpec& match) {
  MatchSpec below;
  below.paths = {(rewrite.prefix == "/" ? "" : rewrite.prefix) + "/**"};
  for (const std::string& path : match.paths) {
    MatchSpec pattern;
    pattern.paths = {path};
    if (Overlap(pattern, below)) continue;
    value["prefix"].Error("no path that " + Backticked(path) + " matches begins with " +
                          Backticked(rewrite.prefix) + ", so this would never apply to it");
  }
  for (const MatchSpec& alternative : match.any) CheckPrefix(value, rewrite, alternative);
}

constexpr ValueType kPlainPathType{
    .schema =
        R"({"description": "A path in normal form, without a final slash, `*` and parameters.",
        "anyOf": [{"type": "string", "pattern": "^/([^*]*[^*/])?$"}, {"$ref": "#/$defs/environment"}]})",
    .shown = "a path in normal form without a final `/`",
    .name = "plain_path"};
constexpr auto kRewriteFields = Fields({
    Value<&Rewrite::prefix, ReadPlainPath>(
        "prefix", kPlainPathType,
        "The beginning of the path, by whole segments: `/v1` is no beginning of `/v1x`. Other "
        "paths are not changed.")
        .Otherwise("required"),
    Value<&Rewrite::with, ReadPlainPath>("with", kPlainPathType, "The text that replaces `prefix`.")
        .Otherwise("required"),
});
constexpr Section<Rewrite> kRewriteSection("rewrite", kRewriteFields, nullptr,
                                           R"("required": ["prefix", "with"])");

/// Reads the `rewrite` of a route. REQUIRES: the route's `match` has been read.
void ReadRewrite(const ConfigValue& value, RouteSpec& route) {
  Rewrite rewrite;
  ReadSection(value, kRewriteSection, rewrite);
  if (!value.is_map()) return;
  if (!value["prefix"].written() || !value["with"].written()) {
    return value.Error("needs `prefix` and `with`, as in `{ prefix: /v1, with: / }`");
  }
  if (rewrite.prefix.empty() || rewrite.with.empty()) return;
  if (rewrite.prefix == rewrite.with) {
    return value.Error("has the same `prefix` and `with`, so that it would change nothing");
  }
  CheckPrefix(value, rewrite, route.match);
  route.rewrite = std::move(rewrite);
}

constexpr std::array<std::string_view, 2> kHostWords = {"preserve", "target"};

void ReadRouteHost(const ConfigValue& value, RouteSpec& route) {
  const auto text = value.Text("`preserve`, `target` or a name");
  if (!text) return;
  if (*text == kHostWords[0]) {
    route.host = RouteSpec::Host::kPreserve;
  } else if (*text == kHostWords[1]) {
    route.host = RouteSpec::Host::kTarget;
  } else if (auto host = ReadHostPort(value)) {
    const std::string hint = DidYouMean(*text, kHostWords);
    if (!hint.empty())
      value.Warning("sends the name " + Backticked(*host) + " to upstreams" + hint);
    route.host = RouteSpec::Host::kFixed;
    route.host_name = *std::move(host);
  }
}

constexpr auto kRouteFields = Fields({
    Value<&RouteSpec::id, [](const ConfigValue& v) { return ReadId(v); }>(
        "id", kIdType, "Names the route in logs and metrics, and for `per: route`.")
        .Otherwise("the upstream's name and the route's place in the file, as in `api-1`"),
    Value<&RouteSpec::match, ReadMatch>("match", kMatchSection, "Which requests the route serves.")
        .Otherwise("everything"),
    Value<&RouteSpec::upstream,
          [](const ConfigValue& v) { return ReadId(v, "the name of one of `upstreams`"); }>(
        "upstream", ValueType{R"({"type": "string"})", "one of `upstreams`"},
        "The upstream that receives the requests.")
        .Required("needs an `upstream`, which receives its requests"),
    Later<RouteSpec>("rewrite", kRewriteSection,
                     "Replaces the beginning of the path: with `{ prefix: /v1, with: / }`, "
                     "`/v1/users` becomes `/users`. Every pattern of `match.path` must be able to "
                     "begin with the prefix. Rules see the path before the change.")
        .Otherwise("none"),
    Value<&RouteSpec::request_headers,
          [](const ConfigValue& v) { return ReadHeaderEdits(v, Direction::kRequest); }>(
        "request_headers", kHeaderEditsSection, "Changes to the header fields of requests.")
        .Otherwise("none"),
    Value<&RouteSpec::response_headers,
          [](const ConfigValue& v) { return ReadHeaderEdits(v, Direction::kResponse); }>(
        "response_headers", kHeaderEditsSection,
        "Changes to the header fields of responses. Denials and errors of the gateway itself have "
        "the fields of `set` too, except those that Tidegate writes itself and those that describe "
        "a body or its caching, such as `Cache-Control` and `Content-Encoding`.")
        .Otherwise("none"),
    Sub<&RouteSpec::denial>("denial", kDenialSection,
                            "How clients see denials of requests that this route matches, unless "
                            "the rule has its own `denial`.")
        .Otherwise("`responses.denial`"),
    Custom<ReadRouteHost>(
        "host",
        ValueType{R"({"type": "string", "minLength": 1})", "`preserve`, `target` or a name"},
        "The Host that upstreams see: `preserve` (the client's), `target` (the "
        "target's own), or a name with or without a port.")
        .Default("preserve"),
    Duration<&RouteSpec::response_timeout>("response_timeout", std::chrono::milliseconds{10},
                                           std::chrono::hours{24},
                                           "How long the head of the response may take.")
        .Otherwise("the upstream's `response_timeout`"),
    Value<&RouteSpec::body_bytes, ReadBodyBytes>("body_bytes", kBodyBytesType,
                                                 "The longest body of a request.")
        .Otherwise("`gateway.body_bytes`"),
    OneOf<&RouteSpec::encoded_slashes>("encoded_slashes", kEncodedSlashesWords,
                                       "What happens to a path with an encoded slash or backslash.")
        .Otherwise("`paths.encoded_slashes`"),
});
constexpr Section<RouteSpec> kRouteTable("route", kRouteFields);

/// Returns the id of a route without one: `api-3` for the third route. A long name is cut.
std::string MakeId(std::string_view upstream, std::size_t index) {
  const std::string place = "-" + std::to_string(index + 1);
  return std::string{upstream.substr(0, kMaxId - place.size())} + place;
}

/// The names of upstreams, also of those with errors.
std::vector<std::string_view> NamesOf(const ConfigValue& upstreams) {
  std::vector<std::string_view> names;
  const std::vector<const YamlNode*>& children = upstreams.node().children;
  for (std::size_t i = 0; upstreams.is_map() && i + 1 < children.size(); i += 2) {
    if (IsId(children[i]->text)) names.push_back(children[i]->text);
  }
  return names;
}

}  // namespace

constinit const Section<GatewaySpec> kGatewaySection("gateway", kGatewayFields);

std::optional<std::size_t> ReadBodyBytes(const ConfigValue& value) {
  if (value.IsOff()) return 0;
  const auto bytes = value.Size(0, kMaxGatewayBody);
  if (bytes != 0u) return bytes;
  return value.Invalid("should be at least 1; for bodies of any length write `off`");
}

/// Reads `access_log`. A relative path begins in the folder of the file that it is in.
void ReadAccessLog(const ConfigValue& value, Config& config) {
  const auto text = value.Text("`stdout`, `stderr`, `off` or a file's path");
  if (!text) return;
  std::string& path = config.access_log.path;
  if (std::ranges::find(kLogWords, *text) != kLogWords.end()) {
    path = *text;
    return;
  }
  if (text->empty() || text->ends_with('/') || std::any_of(text->begin(), text->end(), IsControl)) {
    return value.Error("should be `stdout`, `stderr`, `off` or a file's path");
  }
  const std::string hint =
      text->find_first_of("/.") == std::string::npos ? DidYouMean(*text, kLogWords) : std::string{};
  if (!hint.empty()) {
    return value.Error("should be `stdout`, `stderr` or `off`, but is " + Backticked(*text) + hint +
                       " For a file of that name write " + Backticked("./" + *text));
  }
  const std::filesystem::path file =
      (std::filesystem::path{value.context().FolderOf(value.at())} / *text).lexically_normal();
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return value.Error("there is no folder " + Backticked(folder) + "; create it first");
  }
  if (std::filesystem::is_directory(file, ignored)) {
    return value.Error(Backticked(file.string()) + " is a folder; name a file in it");
  }
  path = file.string();
}

/// Reports a listener without routes, and routes without a listener.
void CheckGateway(const ConfigValue& root) {
  const ConfigValue routes = root["routes"];
  const ConfigValue listener = root["listen"]["gateway"];
  if (routes.items() > 0 && !IsOpened(listener)) {
    routes.Error(
        "have no effect without a gateway; write `gateway: 0.0.0.0:8080` under `listen`, or remove "
        "the routes");
  }
  if (routes.items() == 0 && IsOpened(listener)) {
    const ConfigValue address = listener["address"];
    root.context().Add(Problem::Severity::kError, address.written() ? address.at() : listener.at(),
                       listener.where(),
                       "has no `routes`, so that every request would be answered with 404; write "
                       "at least one, as in `routes: [{ upstream: api }]`");
  }
}

void WarnAboutGateway(const ConfigValue& root, const Config& config) {
  WarnAboutUnused(root, config);
  WarnAboutUnreachable(root["routes"], config);
}

constinit const SectionInfo kRouteSection = kRouteTable;

void ReadRoutes(const ConfigValue& value, Config& config) {
  if (!value.is_list()) return value.WrongType("a list");
  std::unordered_map<std::string, ConfigValue> ids;  // The value of each id.
  std::vector<std::size_t> indexes;                  // The place of each route in the file.
  for (std::size_t i = 0; i < value.items() && !value.context().full(); ++i) {
    const ConfigValue item = value[i];
    RouteSpec route;
    ReadSection(item, kRouteTable, route);
    if (!item.is_map()) continue;
    if (item["rewrite"].written()) ReadRewrite(item["rewrite"], route);
    if (!route.id.empty()) {
      const ConfigValue id = item["id"];
      const auto [first, is_new] = ids.emplace(route.id, id);
      if (!is_new) {
        id.Error(Backticked(route.id) + " is the id of two routes; the first is on " +
                 LineOf(first->second.at(), id.at()));
      }
    }
    route.at = item.at();
    config.routes.push_back(std::move(route));
    indexes.push_back(i);
  }
  const std::vector<std::string_view> upstreams = NamesOf(value.Root()["upstreams"]);
  const std::unordered_set<std::string_view> known(upstreams.begin(), upstreams.end());
  for (std::size_t i = 0; i < config.routes.size() && !value.context().full(); ++i) {
    RouteSpec& route = config.routes[i];
    if (route.upstream.empty()) continue;
    if (!known.contains(route.upstream)) {
      std::string hint = DidYouMean(route.upstream, upstreams);
      if (hint.empty())
        hint = known.empty() ? ": no upstreams are configured" : ": write " + OneOf(upstreams);
      value[indexes[i]]["upstream"].Error(Backticked(route.upstream) +
                                          " is not one of `upstreams`" + hint);
    }
    if (!route.id.empty()) continue;
    route.id = MakeId(route.upstream, indexes[i]);
    const auto taken = ids.find(route.id);
    if (taken == ids.end()) continue;
    const ConfigValue& id = taken->second;
    id.Error(Backticked(route.id) + " is the name of the route on " + LineOf(route.at, id.at()) +
             ", which has no id; choose another id, or give that route one");
  }
}

}  // namespace tidegate
