// SPDX-License-Identifier: Apache-2.0
#include "rules/match_cover.hpp"

#include <algorithm>

namespace tidegate {
namespace {

/// Returns true if each entry of `narrow` is covered by one of `wide`. An empty list covers all.
template <class T, class F>
bool ListCovers(const std::vector<T>& wide, const std::vector<T>& narrow, F covers) {
  if (wide.empty()) return true;
  if (narrow.empty()) return false;
  return std::ranges::all_of(narrow, [&](const T& n) {
    return std::ranges::any_of(wide, [&](const T& w) { return covers(w, n); });
  });
}

template <class T, class F>
bool ListsMeet(const std::vector<T>& a, const std::vector<T>& b, F meet) {
  if (a.empty() || b.empty()) return true;
  return std::ranges::any_of(a, [&](const T& x) {
    return std::ranges::any_of(b, [&](const T& y) { return meet(x, y); });
  });
}

bool HostCovers(std::string_view wide, std::string_view narrow) noexcept {
  return wide == narrow || HostMatches(wide, narrow);
}

bool HostsMeet(std::string_view a, std::string_view b) noexcept {
  return HostCovers(a, b) || HostCovers(b, a);
}

/// A path pattern, segment by segment.
class Segments {
 public:
  explicit Segments(std::string_view path) noexcept
      : rest_(path.ends_with("/**") ? path.substr(0, path.size() - 3) : path),
        open_(path.ends_with("/**")) {}

  [[nodiscard]] bool done() const noexcept { return rest_.empty(); }
  [[nodiscard]] bool open() const noexcept { return open_; }  ///< True: it ends in `/**`.
  std::string_view Next() noexcept {
    const std::size_t end = std::min(rest_.find('/', 1), rest_.size());
    const std::string_view segment = rest_.substr(1, end - 1);
    rest_.remove_prefix(end);
    return segment;
  }

 private:
  std::string_view rest_;
  bool open_;
};

bool IsParameter(std::string_view segment) noexcept { return segment.starts_with(':'); }

bool PathCovers(std::string_view wide, std::string_view narrow) noexcept {
  Segments w(wide);
  Segments n(narrow);
  while (!w.done()) {
    if (n.done()) return false;
    const std::string_view ws = w.Next();
    const std::string_view ns = n.Next();
    if (IsParameter(ws) ? ns.empty() : ws != ns) return false;
  }
  return w.open() || (n.done() && !n.open());
}

bool PathsMeet(std::string_view a, std::string_view b) noexcept {
  Segments x(a);
  Segments y(b);
  while (!x.done() && !y.done()) {
    const std::string_view xs = x.Next();
    const std::string_view ys = y.Next();
    if (!IsParameter(xs) && !IsParameter(ys) && xs != ys) return false;
  }
  return (x.done() || y.open()) && (y.done() || x.open());
}

bool NetworkCovers(const Network& wide, const Network& narrow) noexcept {
  return wide.bits() <= narrow.bits() && wide.Contains(narrow.base());
}

/// Returns true if a list of paths matches any path, as an empty list does.
bool IsAnyPath(const std::vector<std::string>& paths) {
  return paths.empty() || std::ranges::find(paths, "/**") != paths.end();
}

/// A chain of specs that all match one request: each is an alternative in `any` of the spec before.
struct Chain {
  const MatchSpec& spec;
  const Chain* outer = nullptr;
};

/// Returns true if `holds` returns true for a spec of the chain.
template <class F>
bool AnyOf(const Chain& chain, F holds) {
  for (const Chain* link = &chain; link != nullptr; link = link->outer) {
    if (holds(link->spec)) return true;
  }
  return false;
}

/// As CoversChain, but compares only the own conditions of `wide`, without `any` and `none`.
bool OwnCover(const MatchSpec& wide, const Chain& narrow) {
  const auto covers = [&](auto list, auto entry_covers) {
    return AnyOf(narrow, [&](const MatchSpec& spec) {
      return ListCovers(wide.*list, spec.*list, entry_covers);
    });
  };
  return covers(&MatchSpec::hosts, HostCovers) &&
         (IsAnyPath(wide.paths) || covers(&MatchSpec::paths, PathCovers)) &&
         covers(&MatchSpec::methods, std::equal_to<>{}) &&
         covers(&MatchSpec::client_ips, NetworkCovers) &&
         std::ranges::all_of(wide.headers, [&](const MatchSpec::Header& w) {
           return AnyOf(narrow, [&](const MatchSpec& spec) {
             return std::ranges::any_of(spec.headers, [&](const MatchSpec::Header& n) {
               return w.name == n.name && (w.pattern == n.pattern || w.pattern == "*");
             });
           });
         });
}

/// Returns true if no request that matches `narrow` can match `excluded`.
bool Excludes(const Chain& narrow, const MatchSpec& excluded) {
  return AnyOf(narrow, [&](const MatchSpec& spec) {
    return !Overlap(spec, excluded) || std::ranges::any_of(spec.none, [&](const MatchSpec& none) {
      return Covers(none, excluded);
    });
  });
}

bool CoversChain(const MatchSpec& wide, const Chain& narrow) {
  const bool covers =
      OwnCover(wide, narrow) &&
      (wide.any.empty() || std::ranges::any_of(wide.any,
                                               [&](const MatchSpec& alternative) {
                                                 return CoversChain(alternative, narrow);
                                               })) &&
      std::ranges::all_of(wide.none,
                          [&](const MatchSpec& excluded) { return Excludes(narrow, excluded); });
  if (covers) return true;
  // Each alternative of `narrow` may be covered in a different way.
  const std::vector<MatchSpec>& any = narrow.spec.any;
  return !any.empty() && std::ranges::all_of(any, [&](const MatchSpec& alternative) {
    return CoversChain(wide, {alternative, &narrow});
  });
}

/// Returns true if one request could meet the own conditions of `a` and of `b`.
bool OwnOverlap(const MatchSpec& a, const MatchSpec& b) {
  return ListsMeet(a.hosts, b.hosts, HostsMeet) && ListsMeet(a.paths, b.paths, PathsMeet) &&
         ListsMeet(a.methods, b.methods, std::equal_to<>{}) &&
         ListsMeet(a.client_ips, b.client_ips, [](const Network& x, const Network& y) {
           return NetworkCovers(x, y) || NetworkCovers(y, x);
         });
}

/// Returns true if `spec` excludes everything that `other` matches.
bool ExcludesAll(const MatchSpec& spec, const MatchSpec& other) {
  return std::ranges::any_of(spec.none, [&](const MatchSpec& none) { return Covers(none, other); });
}

/// In a place, stands for any host or any segment. No real host or segment has this text.
constexpr std::string_view kAny = "*";
/// In a place, stands for a match that does not fix the host or segment: every search includes it.
constexpr std::string_view kOpen = "";
/// A match with more combinations of hosts and paths than this is stored as open.
constexpr std::size_t kMaxPlaces = 64;

std::string PlaceKey(std::string_view host, std::string_view segment) {
  return std::string{host}.append("\n").append(segment);
}

/// Returns the path's first segment, or kOpen if it is not fixed.
std::string_view FirstSegment(std::string_view path) noexcept {
  const std::string_view segment = path.substr(1, std::min(path.find('/', 1), path.size()) - 1);
  if (segment.starts_with(':') || segment == "**") return kOpen;
  // `/v1/**` matches `/v1`. The segment of `/` is empty, so it is stored as open: only slower.
  return segment;
}

std::vector<std::string_view> SegmentsOf(const MatchSpec& match) {
  std::vector<std::string_view> segments;
  for (const std::string& path : match.paths) segments.push_back(FirstSegment(path));
  if (segments.empty()) segments.push_back(kOpen);
  std::ranges::sort(segments);
  segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
  return segments;
}

/// Appends the stored hosts that may match `host`.
void AppendHosts(std::string_view host, std::vector<std::string>& hosts) {
  hosts.emplace_back(host);
  for (auto dot = host.find('.'); dot != std::string_view::npos; dot = host.find('.', dot + 1)) {
    hosts.push_back("*" + std::string{host.substr(dot)});
  }
}

/// Collects the hosts and first segments under which a spec that covers `match` can be stored. Such
/// a spec must cover the first host and path of `match`, so searching for those is enough.
void AppendFirst(const MatchSpec& match, std::vector<std::string>& hosts,
                 std::vector<std::string_view>& segments) {
  if (!match.hosts.empty()) AppendHosts(match.hosts.front(), hosts);
  if (!match.paths.empty()) segments.push_back(FirstSegment(match.paths.front()));
  if (!match.any.empty()) AppendFirst(match.any.front(), hosts, segments);
}

/// Returns the number of entries in a match, its alternatives and its exceptions.
std::int64_t EntriesOf(const MatchSpec& match) {
  auto entries = static_cast<std::int64_t>(1 + match.hosts.size() + match.paths.size() +
                                           match.client_ips.size());
  for (const MatchSpec& spec : match.any) entries += EntriesOf(spec);
  for (const MatchSpec& spec : match.none) entries += EntriesOf(spec);
  return entries;
}

bool IsNested(const MatchSpec& match) noexcept { return !match.any.empty() || !match.none.empty(); }

/// Returns about how many comparisons it takes to compare two matches.
std::int64_t CostOf(const MatchSpec& a, const MatchSpec& b) {
  if (IsNested(a) || IsNested(b)) return 4 * EntriesOf(a) * EntriesOf(b);
  return 1 + static_cast<std::int64_t>(a.hosts.size() * b.hosts.size() +
                                       a.paths.size() * b.paths.size() +
                                       a.client_ips.size() * b.client_ips.size());
}

}  // namespace

bool Covers(const MatchSpec& wide, const MatchSpec& narrow) { return CoversChain(wide, {narrow}); }

bool Overlap(const MatchSpec& a, const MatchSpec& b) {
  if (!OwnOverlap(a, b) || ExcludesAll(a, b) || ExcludesAll(b, a)) return false;
  if (!a.any.empty()) {
    return std::ranges::any_of(a.any, [&](const MatchSpec& spec) { return Overlap(spec, b); });
  }
  if (!b.any.empty()) {
    return std::ranges::any_of(b.any, [&](const MatchSpec& spec) { return Overlap(a, spec); });
  }
  return true;
}

void RuleLookup::Add(const MatchSpec& match) {
  std::vector<std::string_view> hosts(match.hosts.begin(), match.hosts.end());
  if (hosts.empty()) hosts = {kOpen};
  auto segments = SegmentsOf(match);
  if (hosts.size() * segments.size() > kMaxPlaces) {
    hosts = {kOpen};
    segments = {kOpen};
  }
  for (const std::string_view host : hosts) {
    for (const std::string_view segment : segments) {
      by_place_[PlaceKey(host, segment)].push_back(&match);
      by_place_[PlaceKey(host, kAny)].push_back(&match);
      by_place_[PlaceKey(kAny, segment)].push_back(&match);
    }
  }
  by_place_[PlaceKey(kAny, kAny)].push_back(&match);
}

const MatchSpec* RuleLookup::Find(const MatchSpec& match, Relation relation) {
  // A cover must cover the first host and path of the match; an overlap may be with any of them.
  std::vector<std::string> hosts{std::string{kOpen}};
  std::vector<std::string_view> segments;
  if (relation == Relation::kCover) {
    AppendFirst(match, hosts, segments);
    segments.push_back(kOpen);
  } else {
    for (const std::string& host : match.hosts) AppendHosts(host, hosts);
    const auto is_wild = [](const std::string& host) { return host.starts_with("*."); };
    if (std::ranges::any_of(match.hosts, is_wild) || match.hosts.empty()) {
      hosts = {std::string{kAny}};
    }
    segments = SegmentsOf(match);
    if (segments.front() == kOpen) segments = {kAny};
    if (segments.front() != kAny) segments.push_back(kOpen);
  }
  for (const std::string& host : hosts) {
    for (const std::string_view segment : segments) {
      const auto found = by_place_.find(PlaceKey(host, segment));
      if (found == by_place_.end()) continue;
      for (const MatchSpec* const held : found->second) {
        budget_ -= CostOf(*held, match);
        if (exhausted()) return nullptr;
        if (relation == Relation::kCover ? Covers(*held, match) : Overlap(*held, match))
          return held;
      }
    }
  }
  return nullptr;
}

const MatchSpec* RuleLookup::FindCover(const MatchSpec& match) {
  return Find(match, Relation::kCover);
}

bool RuleLookup::AnyOverlaps(const MatchSpec& match) {
  return Find(match, Relation::kOverlap) != nullptr;
}

}  // namespace tidegate
