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

/// What MatchSpecs ask beside host and path, by number. All that one spec asks lies in one run of
/// bytes, since of 10,000 specs that of the next request is never in the cache: this way it is one
/// line or two to fetch instead of one for each vector and string.
class MatchConditions {
 public:
  /// Numbered from 0.
  void Add(const MatchSpec& spec);

  [[nodiscard]] bool IsEmpty(std::uint32_t spec) const noexcept { return begins_[spec] == kNone; }
  [[nodiscard]] bool Hold(std::uint32_t spec, const RequestView& request) const noexcept;

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  class Reader;

  void Write(std::size_t number);
  void Write(std::string_view text);

  std::vector<std::uint32_t> begins_;  ///< In `bytes_`; kNone: nothing is asked.
  std::string bytes_;
  std::vector<NetworkSet> networks_;  ///< Lists that are too long to stand among the bytes.
};

}  // namespace tidegate
