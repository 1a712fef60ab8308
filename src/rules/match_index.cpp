// SPDX-License-Identifier: Apache-2.0
#include "rules/match_index.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.hpp"
#include "rules/match_leaves.hpp"
#include "rules/path_trie.hpp"

namespace tidegate {
namespace {

/// Collects numbers in a span. A spec with several hosts, paths or networks may be found more than
/// once, so duplicates are removed when the span is full, and at the end.
class Gathering {
 public:
  explicit Gathering(std::span<std::uint32_t> room) noexcept : room_(room) {}

  void Add(std::uint32_t number) noexcept {
    if (size_ == room_.size() && missed_ == 0) MakeUnique();
    if (size_ < room_.size()) {
      room_[size_++] = number;
      return;
    }
    // The span is full of different numbers, and sorted.
    if (!std::ranges::binary_search(room_, number)) ++missed_;
  }

  std::size_t Finish() noexcept {
    if (missed_ == 0) MakeUnique();
    return size_ + missed_;
  }

 private:
  void MakeUnique() noexcept {
    const auto end = room_.begin() + static_cast<std::ptrdiff_t>(size_);
    std::sort(room_.begin(), end);
    size_ = static_cast<std::size_t>(std::unique(room_.begin(), end) - room_.begin());
  }

  std::span<std::uint32_t> room_;
  std::size_t size_ = 0;
  std::size_t missed_ = 0;
};

/// All combinations of `hosts` and `paths`. nullptr stands for any host or any path.
struct Place {
  const std::vector<std::string>* hosts = nullptr;
  const std::vector<std::string>* paths = nullptr;

  [[nodiscard]] std::size_t size() const noexcept {
    return (hosts == nullptr ? 1 : hosts->size()) * (paths == nullptr ? 1 : paths->size());
  }
};

/// Appends places that together contain all requests that match `spec` and are in `place`. If the
/// spec itself names no host or path, the hosts or paths of its `any` alternatives are used.
void AddPlaces(const MatchSpec& spec, Place place, std::vector<Place>& places) {
  const auto open = [](const std::string& path) { return path == "/**"; };
  if (place.hosts == nullptr && !spec.hosts.empty()) place.hosts = &spec.hosts;
  if (place.paths == nullptr && std::ranges::none_of(spec.paths, open) && !spec.paths.empty()) {
    place.paths = &spec.paths;
  }
  if (spec.any.empty() || (place.hosts != nullptr && place.paths != nullptr)) {
    places.push_back(place);
    return;
  }
  for (const MatchSpec& alternative : spec.any) AddPlaces(alternative, place, places);
}

/// Returns the places under which a spec is indexed. They contain all its requests and few others.
std::vector<Place> PlacesOf(const MatchSpec& spec) {
  constexpr std::size_t kMost = 10'000;  // One rule without `any` may have as many.
  const Place own{.hosts = spec.hosts.empty() ? nullptr : &spec.hosts,
                  .paths = spec.paths.empty() ? nullptr : &spec.paths};
  if (spec.any.empty()) return {own};
  std::vector<Place> places;
  AddPlaces(spec, {}, places);
  std::size_t size = 0;
  for (const Place& place : places) size += place.size();
  return size <= kMost ? places : std::vector<Place>{own};
}

/// An index of host names, each with a tree of paths that has the host's name.
class HostIndex {
 public:
  /// Returns the tree of a name, and adds it if it is new.
  std::uint32_t RootOf(std::string_view name, PathTrie& paths) {
    const std::uint32_t existing = Find(name, paths);
    if (existing != HashIndex::kNone) return existing;
    const std::uint32_t root = paths.AddRoot(name);
    index_.Insert(Hash(name), root);
    longest_ = std::max(longest_, name.size());
    return root;
  }
  void Finish() { index_.Finish(); }

  [[nodiscard]] std::uint32_t Find(std::string_view name, const PathTrie& paths) const noexcept {
    if (name.size() > longest_) return HashIndex::kNone;
    return index_.Find(Hash(name), [&](std::uint32_t root) { return paths.NameOf(root) == name; });
  }
  [[nodiscard]] bool empty() const noexcept { return longest_ == 0; }

 private:
  HashIndex index_;
  std::size_t longest_ = 0;  ///< Longer names match nothing: not hashing them bounds the work.
};

}  // namespace

struct MatchIndex::Impl {
  PathTrie paths;
  HostIndex hosts;
  HostIndex suffixes;  ///< Contains `.example.com` for `*.example.com`.
  std::uint32_t any_host = PathTrie::kNone;
  std::optional<MatchLeaves> leaves;

  explicit Impl(std::span<const MatchSpec> specs) {
    std::vector<std::vector<std::uint32_t>> members;
    for (std::uint32_t id = 0; id < specs.size(); ++id) {
      for (const std::uint32_t leaf : LeavesOf(specs[id], members)) members[leaf].push_back(id);
    }
    leaves.emplace(specs, members);
    hosts.Finish();
    suffixes.Finish();
    paths.Finish([this](std::uint32_t leaf) {
      const std::uint32_t single = leaves->Single(leaf);
      return single == HashIndex::kNone ? leaf : single | kSingle;
    });
  }

  /// If this bit is set, the leaf is the number of the only spec that it leads to.
  static constexpr std::uint32_t kSingle = 0x8000'0000;

  /// Returns the leaves to which a spec belongs, each once.
  std::vector<std::uint32_t> LeavesOf(const MatchSpec& spec,
                                      std::vector<std::vector<std::uint32_t>>& members) {
    static const std::vector<std::string> kAnyHost = {""};
    static const std::vector<std::string> kAnyPath = {"/**"};
    std::vector<std::uint32_t> found;
    for (const Place& place : PlacesOf(spec)) {
      for (const std::string& host : place.hosts == nullptr ? kAnyHost : *place.hosts) {
        const std::uint32_t root = RootOf(host);
        for (const std::string& path : place.paths == nullptr ? kAnyPath : *place.paths) {
          std::uint32_t& leaf = paths.LeafOf(root, path);
          if (leaf == PathTrie::kNone) {
            leaf = static_cast<std::uint32_t>(members.size());
            members.emplace_back();
          }
          found.push_back(leaf);
        }
      }
    }
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  std::uint32_t RootOf(std::string_view host) {
    if (host.starts_with("*.")) return suffixes.RootOf(host.substr(1), paths);
    if (!host.empty()) return hosts.RootOf(host, paths);
    if (any_host == PathTrie::kNone) any_host = paths.AddRoot();
    return any_host;
  }

  /// Adds the specs that match `path`, which is one reading of the request's path.
  void Gather(const RequestView& request, std::string_view path, Readings readings,
              Gathering& gathering) const noexcept {
    EachRoot(request.host, [&](std::uint32_t root) {
      paths.Find(root, path, [&](std::uint32_t leaf) {
        if ((leaf & kSingle) != 0) {
          gathering.Add(leaf & ~kSingle);
        } else {
          leaves->Find(leaf, request, readings, [&](std::uint32_t id) { gathering.Add(id); });
        }
      });
    });
  }

  /// Calls `visit(root)` for each tree that applies to the host.
  template <class Visit>
  void EachRoot(std::string_view host, Visit&& visit) const noexcept {
    if (any_host != PathTrie::kNone) visit(any_host);
    if (const std::uint32_t root = hosts.Find(host, paths); root != PathTrie::kNone) visit(root);
    if (suffixes.empty() || host.empty()) return;
    // Starts at 1, because `*` must match at least one character.
    for (std::size_t dot = host.find('.', 1); dot < host.size(); dot = host.find('.', dot + 1)) {
      const std::uint32_t root = suffixes.Find(host.substr(dot), paths);
      if (root != PathTrie::kNone) visit(root);
    }
  }
};

MatchIndex::MatchIndex(std::span<const MatchSpec> specs) : impl_(std::make_unique<Impl>(specs)) {}
MatchIndex::~MatchIndex() = default;

std::size_t MatchIndex::Find(const RequestView& request,
                             std::span<std::uint32_t> found) const noexcept {
  Gathering gathering(found);
  impl_->Gather(request, request.path, Readings::kAny, gathering);
  if (!request.lenient_path.empty()) {
    impl_->Gather(request, request.lenient_path, Readings::kAny, gathering);
  }
  return gathering.Finish();
}

bool MatchIndex::MatchesEveryReading(const RequestView& request) const noexcept {
  if (request.differs_from_upstream) return false;
  return request.PathHolds(Readings::kEvery, [&](std::string_view path) {
    std::uint32_t found = 0;
    Gathering gathering({&found, 1});
    impl_->Gather(request, path, Readings::kEvery, gathering);
    return gathering.Finish() != 0;
  });
}

}  // namespace tidegate
