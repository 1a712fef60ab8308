// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rules/config.hpp"
#include "rules/request_view.hpp"

namespace tidegate {

/// Finds every MatchSpec that a request satisfies. Immutable, thread-safe, and built so
/// that the cost of a look-up grows with the number of matches, the labels of the host and the
/// segments of the path, not with the number of specs: hosts in a hash table, paths in a trie of
/// segments, and at its leaves hash tables of exact header values, of networks and of methods.
///
/// A spec whose hosts or paths are only in the alternatives of `any` is filed under those of each
/// alternative. What `not` excludes is checked for the specs that are found.
///
/// `*.example.com` is any name below example.com, at any depth, and not example.com itself.
/// `/v1/**` is `/v1`, `/v1/` and all below; `:id` is one segment that is not empty. A header
/// condition holds if any line of that name fits. Without a known client no `client_ip` holds.
class MatchIndex {
 public:
  explicit MatchIndex(std::span<const MatchSpec* const> specs);
  MatchIndex(MatchIndex&&) noexcept;
  MatchIndex& operator=(MatchIndex&&) noexcept;
  ~MatchIndex();

  /// Finds the specs that match the request's path in any of its readings, as sent or as lenient
  /// servers read it.
  ///
  /// Writes the numbers of the matching specs, ascending and each once, and returns how many match.
  /// At most `found.size()` are written (the lowest are not promised then); the returned number is
  /// then larger than that, and enough room for all. Does not allocate.
  std::size_t Find(const RequestView& request, std::span<std::uint32_t> found) const noexcept;

  /// Returns true if every reading of the request's path matches a spec, and the upstream receives
  /// one of these readings.
  [[nodiscard]] bool MatchesEveryReading(const RequestView& request) const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether `text` fits `pattern`, where `*` stands for any run of characters. Linear in practice,
/// at worst the product of both lengths; never recursive.
[[nodiscard]] bool GlobMatches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace tidegate
