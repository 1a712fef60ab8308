// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory_resource>
#include <optional>

#include "frontends/question.hpp"
#include "frontends/resolve.hpp"
#include "rules/rule_set.hpp"

namespace tidegate {

/// The charge of the one key that an operator names: `rule` with `identity`, or with `key` as it is
/// shown. Its quota is the one in force. Text is allocated from `memory`.
[[nodiscard]] std::optional<Objection> ResolveKey(const Question& question, const RuleSet& rules,
                                                  const OverrideTable& overrides, Charges& charges,
                                                  std::pmr::memory_resource& memory);

}  // namespace tidegate
