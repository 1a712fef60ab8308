// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rules/config.hpp"
#include "rules/request_view.hpp"

namespace tidegate {

/// Networks, searched by their few prefix lengths: a list of 10,000 costs no more than one of ten.
class NetworkSet {
 public:
  explicit NetworkSet(std::span<const Network> networks);

  [[nodiscard]] bool empty() const noexcept { return networks_.empty(); }
  [[nodiscard]] bool Contains(const Address& address) const noexcept;

 private:
  std::vector<std::pair<int, Address>> networks_;  ///< Sorted.
  std::vector<int> lengths_;                       ///< Those that occur, each once.
};

/// What a MatchSpec asks beside host and path.
class MatchConditions {
 public:
  explicit MatchConditions(const MatchSpec& spec)
      : methods_(spec.methods), headers_(spec.headers), networks_(spec.client_ips) {}

  [[nodiscard]] bool empty() const noexcept {
    return methods_.empty() && headers_.empty() && networks_.empty();
  }
  [[nodiscard]] bool Hold(const RequestView& request) const noexcept;

 private:
  std::vector<std::string> methods_;
  std::vector<MatchSpec::Header> headers_;
  NetworkSet networks_;
};

}  // namespace tidegate
