// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "frontends/tokens.hpp"
#include "rules/config.hpp"
#include "rules/rule_set.hpp"

namespace tidegate {

/// What a reload swaps as a whole.
struct Policy {
  std::shared_ptr<const RuleSet> rules;
  std::vector<std::uint32_t> slots;  ///< Of the rules' counters, by their number.
  Config::Responses responses;
  Config::Api api;
  Config::Resp resp;
  std::shared_ptr<const Tokens> tokens = std::make_shared<const Tokens>();
};

}  // namespace tidegate
