// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "identity/request_view.hpp"
#include "rules/match_spec.hpp"

namespace tidegate {

/// A set of networks. A search does one look-up for each prefix length that occurs, so a list of
/// 10,000 networks costs little more than one of ten.
class NetworkSet {
 public:
  explicit NetworkSet(std::span<const Network> networks);
  [[nodiscard]] bool Contains(const Address& address) const noexcept;

 private:
  std::vector<std::pair<int, Address>> networks_;  ///< Sorted.
  std::vector<int> lengths_;                       ///< The prefix lengths that occur, each once.
};

/// The conditions of numbered MatchSpecs, except their own hosts and paths: methods, headers,
/// networks, and the complete specs in `any` and `none`. All conditions of a spec are one run of
/// bytes: with 10,000 specs, those that the next request needs are never in the CPU cache, and a
/// run takes one or two cache lines instead of one for each vector and string.
class MatchConditions {
 public:
  /// Adds a spec. Specs are numbered from 0.
  void Add(const MatchSpec& spec);

  /// Returns true if the spec has no conditions beside its own hosts and paths.
  [[nodiscard]] bool IsEmpty(std::uint32_t spec) const noexcept { return begins_[spec] == kNone; }
  /// Returns true if all conditions of `spec` hold for the request. Paths in `any` must hold in
  /// `readings`, paths in `none` in the opposite readings.
  [[nodiscard]] bool Hold(std::uint32_t spec, const RequestView& request,
                          Readings readings) const noexcept;

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  /// This bit is set in a record's number of methods if specs of `any` and `none` follow.
  static constexpr std::uint32_t kNested = 0x8000'0000;
  class Reader;

  void Write(std::size_t number);
  void Write(std::string_view text);
  void Write(const std::vector<std::string>& texts);
  /// Calls `write`, and stores the number of bytes that it wrote in front of them.
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

  std::vector<std::uint32_t> begins_;  ///< Offsets into `bytes_`; kNone: no conditions.
  std::string bytes_;
  std::vector<NetworkSet> networks_;  ///< The lists that are too long to be stored in `bytes_`.
};

}  // namespace tidegate
