// SPDX-License-Identifier: Apache-2.0
#include "rules/rule_lookup.hpp"

#include <algorithm>

#include "rules/match_cover.hpp"

namespace tidegate {
namespace {

/// Stands for "whatever it is" on either side of a place. No host and no segment is like these.
constexpr std::string_view kAny = "*";
/// Of a match that leaves it open: it must be looked at for every place.
constexpr std::string_view kOpen = "";
/// A match with more hosts times paths than this is filed as open.
constexpr std::size_t kMaxPlaces = 64;

std::string Place(std::string_view host, std::string_view segment) {
  std::string place{host};
  place += '\n';
  return place += segment;
}

/// The path's first segment, or kOpen where that is not fixed.
std::string_view FirstSegment(std::string_view path) noexcept {
  const std::string_view segment = path.substr(1, std::min(path.find('/', 1), path.size()) - 1);
  if (segment.starts_with(':') || segment == "**") return kOpen;
  // `/v1/**` matches `/v1`, and the segment of `/` is empty: filed as open, it is only slower.
  return segment;
}

/// All of `hosts`' or `paths`' places; open where the list is empty.
std::vector<std::string_view> HostsOf(const MatchSpec& match) {
  if (match.hosts.empty()) return {kOpen};
  return {match.hosts.begin(), match.hosts.end()};
}

std::vector<std::string_view> SegmentsOf(const MatchSpec& match) {
  std::vector<std::string_view> segments;
  for (const std::string& path : match.paths) segments.push_back(FirstSegment(path));
  if (segments.empty()) segments.push_back(kOpen);
  std::sort(segments.begin(), segments.end());
  segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
  return segments;
}

/// The filed hosts that may match what `host` does.
void AppendHosts(std::string_view host, std::vector<std::string>& hosts) {
  hosts.emplace_back(host);
  for (auto dot = host.find('.'); dot != std::string_view::npos; dot = host.find('.', dot + 1)) {
    hosts.push_back("*" + std::string{host.substr(dot)});
  }
}

/// Collects the hosts and first segments under which a spec that covers `match` can be filed. It
/// must cover the first host and path of `match`, so looking those up is enough.
void AppendFirst(const MatchSpec& match, std::vector<std::string>& hosts,
                 std::vector<std::string_view>& segments) {
  if (!match.hosts.empty()) AppendHosts(match.hosts.front(), hosts);
  if (!match.paths.empty()) segments.push_back(FirstSegment(match.paths.front()));
  if (!match.any.empty()) AppendFirst(match.any.front(), hosts, segments);
}

/// The number of entries in a match, its alternatives and its exceptions.
std::int64_t EntriesOf(const MatchSpec& match) {
  auto entries = static_cast<std::int64_t>(1 + match.hosts.size() + match.paths.size() +
                                           match.client_ips.size());
  for (const MatchSpec& spec : match.any) entries += EntriesOf(spec);
  for (const MatchSpec& spec : match.none) entries += EntriesOf(spec);
  return entries;
}

bool IsNested(const MatchSpec& match) noexcept { return !match.any.empty() || !match.none.empty(); }

/// How many comparisons it takes to compare two matches. With alternatives or exceptions, some
/// entries are compared several times.
std::int64_t CostOf(const MatchSpec& a, const MatchSpec& b) {
  if (IsNested(a) || IsNested(b)) return 4 * EntriesOf(a) * EntriesOf(b);
  return 1 + static_cast<std::int64_t>(a.hosts.size() * b.hosts.size() +
                                       a.paths.size() * b.paths.size() +
                                       a.client_ips.size() * b.client_ips.size());
}

bool IsFixedHost(std::string_view host) noexcept { return !host.starts_with("*."); }

}  // namespace

void RuleLookup::Add(const MatchSpec& match) {
  auto hosts = HostsOf(match);
  auto segments = SegmentsOf(match);
  if (hosts.size() * segments.size() > kMaxPlaces) {
    hosts = {kOpen};
    segments = {kOpen};
  }
  for (const std::string_view host : hosts) {
    for (const std::string_view segment : segments) {
      by_place_[Place(host, segment)].push_back(&match);
      by_place_[Place(host, kAny)].push_back(&match);
      by_place_[Place(kAny, segment)].push_back(&match);
    }
  }
  by_place_[Place(kAny, kAny)].push_back(&match);
}

const MatchSpec* RuleLookup::Find(const MatchSpec& match, Ask ask) {
  // To cover a match is to cover its first host and path; to overlap, any of them will do.
  std::vector<std::string> hosts{std::string{kOpen}};
  std::vector<std::string_view> segments;
  if (ask == Ask::kCover) {
    AppendFirst(match, hosts, segments);
    segments.push_back(kOpen);
  } else {
    for (const std::string& host : match.hosts) AppendHosts(host, hosts);
    if (!std::all_of(match.hosts.begin(), match.hosts.end(), IsFixedHost) || match.hosts.empty()) {
      hosts = {std::string{kAny}};
    }
    segments = SegmentsOf(match);
    if (segments.front() == kOpen) segments = {kAny};
    if (segments.front() != kAny) segments.push_back(kOpen);
  }
  for (const std::string& host : hosts) {
    for (const std::string_view segment : segments) {
      const auto found = by_place_.find(Place(host, segment));
      if (found == by_place_.end()) continue;
      for (const MatchSpec* const held : found->second) {
        budget_ -= CostOf(*held, match);
        if (exhausted()) return nullptr;
        if (ask == Ask::kCover ? Covers(*held, match) : Overlap(*held, match)) return held;
      }
    }
  }
  return nullptr;
}

const MatchSpec* RuleLookup::FindCover(const MatchSpec& match) { return Find(match, Ask::kCover); }

bool RuleLookup::AnyOverlaps(const MatchSpec& match) {
  return Find(match, Ask::kOverlap) != nullptr;
}

}  // namespace tidegate
