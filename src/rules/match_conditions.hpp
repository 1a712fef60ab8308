// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/config.hpp"
#include "rules/request_view.hpp"

namespace tidegate {

/// Networks, searched by their few prefix lengths: a list of 10,000 costs little more than one of
/// ten.
class NetworkSet {
 public:
  explicit NetworkSet(std::span<const Network> networks);
  [[nodiscard]] bool Contains(const Address& address) const noexcept;

 private:
  std::vector<std::pair<int, Address>> networks_;  ///< Sorted.
  std::vector<int> lengths_;                       ///< Those that occur, each once.
};

/// Whether a request's path matches a pattern such as `/v1/**` or `/users/:id`; as MatchIndex says.
/// Does not allocate.
[[nodiscard]] bool PathMatches(std::string_view pattern, std::string_view path) noexcept;
/// Whether a request's host is `pattern`, or below it if that is `*.example.com`.
[[nodiscard]] bool HostMatches(std::string_view pattern, std::string_view host) noexcept;

/// The conditions of MatchSpecs beside their own hosts and paths, by number: methods, headers,
/// networks, and the whole of the specs in `any` and `none`.
///
/// All conditions of a spec lie in one run of bytes. Of 10,000 specs those of the next request are
/// never in the cache: this way one or two cache lines are fetched instead of one for each vector
/// and string.
class MatchConditions {
 public:
  /// Adds a spec. Specs are numbered from 0.
  void Add(const MatchSpec& spec);

  /// Returns true if the spec has no conditions beside its own hosts and paths.
  [[nodiscard]] bool IsEmpty(std::uint32_t spec) const noexcept { return begins_[spec] == kNone; }
  /// `readings` is about paths in `any`; those in `none` must hold in the opposite.
  [[nodiscard]] bool Hold(std::uint32_t spec, const RequestView& request,
                          Readings readings) const noexcept;

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  /// Set in a record's number of methods if specs of `any` and `none` follow its own conditions.
  static constexpr std::uint32_t kNested = 0x8000'0000;
  class Reader;

  void Write(std::size_t number);
  void Write(std::string_view text);
  void Write(const std::vector<std::string>& texts);
  /// Writes the size of what `write` writes, and then that.
  template <class F>
  void WriteSized(F write);
  void WriteRecord(const MatchSpec& spec);
  void WriteOwn(const MatchSpec& spec);
  void WriteNested(const std::vector<MatchSpec>& specs);

  [[nodiscard]] bool RecordHolds(Reader reader, const RequestView& request,
                                 Readings readings) const noexcept;
  [[nodiscard]] bool OwnHold(Reader reader, std::uint32_t methods,
                             const RequestView& request) const noexcept;
  [[nodiscard]] bool NestedHold(Reader reader, const RequestView& request,
                                Readings readings) const noexcept;
  [[nodiscard]] bool SpecHolds(Reader reader, const RequestView& request,
                               Readings readings) const noexcept;

  std::vector<std::uint32_t> begins_;  ///< In `bytes_`; kNone: there are no conditions.
  std::string bytes_;
  std::vector<NetworkSet> networks_;  ///< Lists that are too long to stand among the bytes.
};

}  // namespace tidegate
