// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "base/utf8.hpp"
#include "identity/request_view.hpp"
#include "rules/match_conditions.hpp"
#include "rules/match_spec.hpp"

namespace tidegate {

/// The specs of each leaf, which all have the same host and path. Each spec is indexed by the one
/// of its conditions that the fewest other specs of the leaf share: an exact header value, a
/// network or a method. So 10,000 rules for one path, each for another key, cost one look-up. Only
/// specs that have nothing but patterns (`BadBot*`), `any` and `not` are tried one by one.
class MatchLeaves {
 public:
  MatchLeaves(std::span<const MatchSpec> specs,
              const std::vector<std::vector<std::uint32_t>>& leaves);

  /// Returns the only spec of a leaf if it has no further conditions; otherwise HashIndex::kNone.
  [[nodiscard]] std::uint32_t Single(std::uint32_t leaf) const noexcept;

  /// Calls `found(spec)` for each spec of leaf `number` that matches, possibly more than once.
  template <class Found>
  void Find(std::uint32_t number, const RequestView& request, Readings readings,
            Found&& found) const noexcept;

 private:
  struct Range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  struct Leaf {
    Range always;   ///< Specs that have no further conditions.
    Range checked;  ///< Specs that are not indexed: they are tried one by one.
    Range lengths;  ///< The prefix lengths of the indexed networks, in `lengths_`.
    bool by_header = false;
    bool by_method = false;
  };
  class Builder;

  /// Returns the number of a header name by which specs are indexed, or HashIndex::kNone.
  [[nodiscard]] std::uint32_t NameOf(std::string_view header) const noexcept;
  /// The condition of a key, a part of the seed: keys of two kinds rarely share a bucket.
  enum class By : std::uint64_t { kMethod, kNetwork, kHeader };
  /// Returns the key of a method, of a network's address with `more` bits, or of a header's value
  /// with the name's number as `more`.
  [[nodiscard]] static std::uint64_t Key(std::uint32_t leaf, By by, std::uint64_t more,
                                         std::string_view text) noexcept {
    return Hash(text, (std::uint64_t{leaf} << 32) ^ (more << 2) ^ static_cast<std::uint64_t>(by));
  }

  template <class Found>
  void Try(std::uint32_t spec, const RequestView& request, Readings readings,
           Found& found) const noexcept {
    if (conditions_.Hold(spec, request, readings)) found(spec);
  }
  template <class Found>
  void Try(Range range, const RequestView& request, Readings readings,
           Found& found) const noexcept {
    for (std::uint32_t i = range.begin; i < range.end; ++i) Try(ids_[i], request, readings, found);
  }
  /// Tries the specs in the bucket of a key. Because hashes are not compared in full, buckets of
  /// other keys may be found too. That is harmless, since each spec is checked in full.
  template <class Found>
  void TryKey(std::uint64_t key, const RequestView& request, Readings readings,
              Found& found) const noexcept {
    bucket_index_.Each(key, [&](std::uint32_t bucket) {
      if ((bucket & kShared) == 0) {
        Try(bucket, request, readings, found);
      } else {
        Try(buckets_[bucket & ~kShared], request, readings, found);
      }
    });
  }

  /// A bucket is the number of its only spec or, if this bit is set, of a Range in `buckets_`.
  static constexpr std::uint32_t kShared = 0x8000'0000;

  MatchConditions conditions_;
  std::vector<Leaf> leaves_;
  std::vector<std::uint32_t> ids_;  ///< Numbers of specs; each Range refers to a part of this list.
  std::vector<int> lengths_;
  std::vector<Range> buckets_;
  HashIndex bucket_index_;
  std::vector<std::string> names_;
  HashIndex name_of_;
  std::uint64_t name_sizes_ = 0;  ///< Bit n is set if a name has n characters, modulo 64.
  std::size_t longest_value_ = 0;
};

template <class Found>
void MatchLeaves::Find(std::uint32_t number, const RequestView& request, Readings readings,
                       Found&& found) const noexcept {
  const Leaf& leaf = leaves_[number];
  for (std::uint32_t i = leaf.always.begin; i < leaf.always.end; ++i) found(ids_[i]);
  Try(leaf.checked, request, readings, found);
  if (leaf.by_method && request.method.size() <= longest_value_) {
    TryKey(Key(number, By::kMethod, 0, request.method), request, readings, found);
  }
  if (leaf.by_header) {
    for (const HeaderField& field : request.headers) {
      if ((name_sizes_ >> (field.name.size() % 64) & 1) == 0) continue;
      const std::string_view value = TrimSpaces(field.value);
      if (value.size() > longest_value_) continue;
      const std::uint32_t name = NameOf(field.name);
      if (name == HashIndex::kNone) continue;
      TryKey(Key(number, By::kHeader, name, value), request, readings, found);
    }
  }
  if (leaf.lengths.begin == leaf.lengths.end || !request.has_client) return;
  const int shortest = request.client.is_v4() ? Network::kV4Bits : 0;
  for (std::uint32_t i = leaf.lengths.begin; i < leaf.lengths.end; ++i) {
    const int bits = lengths_[i];
    if (bits < shortest) continue;
    const Address base = request.client.Masked(bits);
    TryKey(Key(number, By::kNetwork, static_cast<std::uint64_t>(bits), base.bytes()), request,
           readings, found);
  }
}

}  // namespace tidegate
