// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "identity/request_view.hpp"
#include "rules/match_spec.hpp"

namespace tidegate {

/// Finds every MatchSpec that a request satisfies. Immutable and thread-safe. The cost of a look-up
/// grows with the matches found, the labels of the host and the segments of the path, not with the
/// number of specs: hosts are in a hash table, paths in a trie of segments, and at its leaves are
/// hash tables of exact header values, networks and methods.
///
/// `*.example.com` matches every name below example.com, not example.com itself. `/v1/**` matches
/// `/v1`, `/v1/` and all paths below; `:id` matches one segment that is not empty. A header
/// condition holds if any line of that header matches. Without a known client no `client_ip` holds.
class MatchIndex {
 public:
  explicit MatchIndex(std::span<const MatchSpec> specs);
  ~MatchIndex();

  /// Finds the specs that match the request's path in any of its readings, as sent or as lenient
  /// servers read it. Writes their numbers to `found`, ascending and each once, and returns how
  /// many match; if there are more than `found.size()`, any of them are written. Does not allocate.
  std::size_t Find(const RequestView& request, std::span<std::uint32_t> found) const noexcept;

  /// Returns true if every reading of the path matches a spec, and the upstream gets one of these.
  [[nodiscard]] bool MatchesEveryReading(const RequestView& request) const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidegate
