// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory_resource>
#include <optional>

#include "decision/decision_call.hpp"
#include "frontends/question.hpp"
#include "rules/rule_set.hpp"
#include "tidegate/call.hpp"

namespace tidegate {

/// Why a request cannot be carried out: the HTTP status, a sentence, and where (RFC 6901).
struct Objection {
  int status = 400;
  std::string message;
  std::string pointer;
};

/// Whether callers may bring their own quotas.
enum class InlineQuotas : std::uint8_t { kRefused, kAllowed };

/// The rule name of inline quotas. No configured rule may have it.
inline constexpr std::string_view kInlineRule = "inline";

/// Fills `call` with the charges that `question` asks `kind` of, and with what operators decided
/// about their keys. `scratch` is needed only until this returns.
[[nodiscard]] std::optional<Objection> Resolve(const Question& question, Call::Kind kind,
                                               InlineQuotas inline_quotas, DecisionCall& call,
                                               std::pmr::memory_resource& scratch);

/// Whether `question` has nothing but `members`, and all that are `required`, for the endpoint
/// `path`.
[[nodiscard]] std::optional<Objection> CheckMembers(const Question& question, unsigned members,
                                                    unsigned required, std::string_view path);

/// A request's attributes as rules see them: in their normal form, the client found. Points into
/// the question and `memory`.
[[nodiscard]] std::optional<Objection> ViewOf(const Question& question,
                                              const ClientAddressPolicy& policy, RequestView& view,
                                              std::pmr::memory_resource& memory);

}  // namespace tidegate
