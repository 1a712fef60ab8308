// SPDX-License-Identifier: Apache-2.0
#include "admin/key_question.hpp"

#include <utility>

namespace tidegate {

std::optional<Objection> ResolveKey(const Question& question, const RuleSet& rules,
                                    const OverrideTable& overrides, Charges& charges,
                                    std::pmr::memory_resource& memory) {
  const bool by_key = question.Has(Question::kKey);
  if (!question.Has(Question::kRule)) return Objection{400, "say which `rule`", "/rule"};
  if (by_key && question.Has(Question::kIdentity)) {
    return Objection{400, "give `identity` or `key`, not both", "/key"};
  }
  const OverrideView quotas{&overrides, true};
  const auto done =
      by_key ? rules.ResolveKey(question.rule, question.key, quotas, charges)
             : rules.Resolve({question.rule, question.identity, std::nullopt, question.lease},
                             quotas, charges, memory);
  if (done) return std::nullopt;
  const bool unknown = done.error().code == ErrorCode::kUnknownRule;
  return Objection{StatusOf(done.error().code), done.error().message,
                   unknown  ? "/rule"
                   : by_key ? "/key"
                            : "/identity"};
}

}  // namespace tidegate
