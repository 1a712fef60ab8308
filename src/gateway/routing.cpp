// SPDX-License-Identifier: Apache-2.0
#include "gateway/routing.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tidegate {
namespace {

constexpr std::chrono::seconds kPatience{2};

MatchIndex IndexOf(const Config& config) {
  std::vector<MatchSpec> specs;
  for (const RouteSpec& route : config.routes) specs.push_back(route.match);
  if (config.paths.ignore_case) std::ranges::for_each(specs, IgnorePathCase);
  std::vector<const MatchSpec*> matches;
  for (const MatchSpec& spec : specs) matches.push_back(&spec);
  return MatchIndex(matches);
}

const std::shared_ptr<Upstream>* FindUpstream(const Routing* routing, const std::string& name) {
  if (routing == nullptr) return nullptr;
  for (const auto& upstream : routing->upstreams()) {
    if (upstream->spec().name == name) return &upstream;
  }
  return nullptr;
}

}  // namespace

std::optional<std::string_view> Route::Rewrite(std::string_view path, const RequestView& request,
                                               std::pmr::memory_resource& memory) const {
  if (!spec.rewrite) return path;
  const std::string_view prefix =
      spec.rewrite->prefix == "/" ? std::string_view{} : std::string_view{spec.rewrite->prefix};
  const std::string_view with =
      spec.rewrite->with == "/" ? std::string_view{} : std::string_view{spec.rewrite->with};
  const auto begins = [&](std::string_view text) {
    const std::string_view begin = text.substr(0, prefix.size());
    return (ignore_case ? EqualsIgnoreCase(begin, prefix) : begin == prefix) &&
           (text.size() == prefix.size() || text[prefix.size()] == '/');  // Whole segments only.
  };
  std::string_view rest = path;
  if (begins(path)) {
    rest.remove_prefix(prefix.size());
  } else if (!request.PathHolds(Readings::kAny, begins)) {
    return path;
  } else if (request.has_encoded_separator || path.find("//") != std::string_view::npos) {
    return std::nullopt;
  } else {
    // Spelt in another way, such as `/v1;x`: the same number of segments.
    for (auto count = std::ranges::count(prefix, '/'); count > 0; --count) {
      rest.remove_prefix(std::min(rest.find('/', 1), rest.size()));
    }
  }
  if (rest.empty() && with.empty()) return "/";
  if (rest.empty()) return with;
  if (with.empty()) return rest;
  auto* const text = static_cast<char*>(memory.allocate(with.size() + rest.size(), 1));
  std::memcpy(text, with.data(), with.size());
  std::memcpy(text + with.size(), rest.data(), rest.size());
  return std::string_view{text, with.size() + rest.size()};
}

Routing::Routing(const Config& config) : gateway_(config.gateway), index_(IndexOf(config)) {}

std::shared_ptr<const Routing> Routing::Make(const Config& config, const Routing* before,
                                             RuleSlots& routes, RuleSlots& upstreams,
                                             Problems& problems) {
  std::shared_ptr<Routing> routing(new Routing(config));
  Upstreams fresh;
  for (const UpstreamSpec& spec : config.upstreams) {
    const auto* const known = FindUpstream(before, spec.name);
    routing->slots_.push_back(upstreams.SlotOf(spec.name));
    if (known != nullptr && (*known)->spec() == spec) {
      routing->upstreams_.push_back(*known);
      continue;
    }
    auto made = Upstream::Make(spec, known == nullptr ? nullptr : known->get());
    if (!made) {
      problems.push_back(
          {Problem::Severity::kError, {}, "upstreams." + spec.name, made.error().message});
      continue;
    }
    routing->upstreams_.push_back(*made);
    if (!(*made)->names().empty()) fresh.push_back(*made);
  }
  if (routing->upstreams_.size() != config.upstreams.size()) return nullptr;
  if (!fresh.empty()) ResolveNames(fresh, kPatience);
  for (const RouteSpec& spec : config.routes) {
    const auto found = std::ranges::find(config.upstreams, spec.upstream, &UpstreamSpec::name);
    Route route{.spec = spec,
                .upstream = static_cast<std::size_t>(found - config.upstreams.begin()),
                .slot = routes.SlotOf(spec.id),
                .body_bytes = spec.body_bytes.value_or(config.gateway.body_bytes),
                .response_timeout = spec.response_timeout.value_or(found->response_timeout),
                .encoded_slashes = spec.encoded_slashes.value_or(config.paths.encoded_slashes),
                .ignore_case = config.paths.ignore_case};
    routing->routes_.push_back(std::move(route));
  }
  return routing;
}

const Route* Routing::Find(const RequestView& request) const {
  std::array<std::uint32_t, 64> found;
  const std::size_t count = index_.Find(request, found);
  if (count == 0) return nullptr;
  if (count <= found.size()) return &routes_[found[0]];
  std::vector<std::uint32_t> all(count);
  (void)index_.Find(request, all);
  return &routes_[all[0]];
}

}  // namespace tidegate
