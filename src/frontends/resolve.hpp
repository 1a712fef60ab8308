// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>

#include "decision/decision_call.hpp"
#include "frontends/question.hpp"
#include "rules/rule_set.hpp"
#include "tidegate/call.hpp"

namespace tidegate {

/// Why a request is rejected: the HTTP status, a message, and a JSON pointer (RFC 6901).
struct Objection {
  int status = 400;
  std::string message;
  std::string pointer;
};

/// Whether callers may send their own quotas.
enum class InlineQuotas : std::uint8_t { kRefused, kAllowed };

/// The rule name of inline quotas. No configured rule may have it.
inline constexpr std::string_view kInlineRule = "inline";

/// Fills `call` with `kind`, with the charges of `question`, and with the decisions of operators
/// about their keys. `scratch` is needed only until this returns.
[[nodiscard]] std::optional<Objection> Resolve(const Question& question, Call::Kind kind,
                                               InlineQuotas inline_quotas, DecisionCall& call,
                                               std::pmr::memory_resource& scratch);

/// Adds the charge of an inline quota to `call`, which keeps a copy of it. `lease` must live as
/// long as the call.
[[nodiscard]] std::optional<Error> AddInlineCharge(DecisionCall& call, std::string_view key,
                                                   const Quota& quota, std::int64_t cost,
                                                   std::string_view lease);

/// Returns an objection unless `question` has only `members`, and all `required` ones. `path` names
/// the endpoint in the message.
[[nodiscard]] std::optional<Objection> CheckMembers(const Question& question, unsigned members,
                                                    unsigned required, std::string_view path);

/// Fills `view` with the request's attributes as rules see them: in normal form, with the client's
/// address. `view` points into the question and `memory`.
[[nodiscard]] std::optional<Objection> ViewOf(const Question& question, const RuleSet& rules,
                                              RequestView& view, std::pmr::memory_resource& memory);

}  // namespace tidegate
