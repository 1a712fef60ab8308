// SPDX-License-Identifier: Apache-2.0
#include "rules/match_cover.hpp"

#include <algorithm>

namespace tidegate {
namespace {

/// Every entry of `narrow` is covered by one of `wide`; an empty list is everything.
template <class T, class F>
bool ListCovers(const std::vector<T>& wide, const std::vector<T>& narrow, F covers) {
  if (wide.empty()) return true;
  if (narrow.empty()) return false;
  return std::all_of(narrow.begin(), narrow.end(), [&](const T& n) {
    return std::any_of(wide.begin(), wide.end(), [&](const T& w) { return covers(w, n); });
  });
}

template <class T, class F>
bool ListsMeet(const std::vector<T>& a, const std::vector<T>& b, F meet) {
  if (a.empty() || b.empty()) return true;
  return std::any_of(a.begin(), a.end(), [&](const T& x) {
    return std::any_of(b.begin(), b.end(), [&](const T& y) { return meet(x, y); });
  });
}

bool HostCovers(std::string_view wide, std::string_view narrow) noexcept {
  if (wide == narrow) return true;
  return wide.starts_with("*.") && narrow.ends_with(wide.substr(1)) &&
         narrow.size() > wide.size() - 1;
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
  [[nodiscard]] bool open() const noexcept { return open_; }  ///< Goes on with anything.
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

/// Whether a list of paths is any path, as an empty one is.
bool IsAnyPath(const std::vector<std::string>& paths) {
  return paths.empty() || std::find(paths.begin(), paths.end(), "/**") != paths.end();
}

/// Specs that all match one request. A chain: each is an alternative in `any` of the one before.
struct Chain {
  const MatchSpec& spec;
  const Chain* outer = nullptr;
};

/// Whether `holds` is true for a spec of the chain.
template <class F>
bool AnyOf(const Chain& chain, F holds) {
  for (const Chain* link = &chain; link != nullptr; link = link->outer) {
    if (holds(link->spec)) return true;
  }
  return false;
}

bool CoversChain(const MatchSpec& wide, const Chain& narrow);

/// Returns true if the own conditions of `wide`, without `any` and `none`, hold for every request
/// that matches `narrow`.
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
  // Each alternative of `narrow` may be covered for a reason of its own.
  const std::vector<MatchSpec>& any = narrow.spec.any;
  return !any.empty() && std::ranges::all_of(any, [&](const MatchSpec& alternative) {
    return CoversChain(wide, {alternative, &narrow});
  });
}

/// Whether one request could meet the own conditions of both, without `any` and `none`.
bool OwnOverlap(const MatchSpec& a, const MatchSpec& b) {
  return ListsMeet(a.hosts, b.hosts, HostsMeet) && ListsMeet(a.paths, b.paths, PathsMeet) &&
         ListsMeet(a.methods, b.methods, std::equal_to<>{}) &&
         ListsMeet(a.client_ips, b.client_ips, [](const Network& x, const Network& y) {
           return NetworkCovers(x, y) || NetworkCovers(y, x);
         });
}

/// Whether `spec` excludes all that `other` matches.
bool ExcludesAll(const MatchSpec& spec, const MatchSpec& other) {
  return std::ranges::any_of(spec.none, [&](const MatchSpec& none) { return Covers(none, other); });
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

}  // namespace tidegate
