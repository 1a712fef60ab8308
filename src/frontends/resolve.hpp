// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory_resource>
#include <optional>

#include "frontends/question.hpp"
#include "rules/rule_set.hpp"
#include "tidegate/call.hpp"

namespace tidegate {

/// A question the API understands but will not carry out, with the status that says so.
struct Objection {
  int status = 400;
  std::string message;
  std::string pointer;
};

/// A question turned into charges.
struct Resolved {
  explicit Resolved(std::pmr::memory_resource& memory) : charges(memory) {}

  Charges charges;
  Access access = Access::kRules;
  std::optional<Quota> inline_quota;  ///< What the charge of an inline quota points at.
};

/// Whether callers may bring their own quotas.
enum class InlineQuotas : std::uint8_t { kRefused, kAllowed };

/// The rule name of inline quotas; no rule of a configuration may have it.
inline constexpr std::string_view kInlineRule = "inline";

/// What `question` asks `kind` of, and what operators say to that: of those who ask to pass. Text
/// is allocated from `memory`; `resolved` must stay where it is.
[[nodiscard]] std::optional<Objection> Resolve(const Question& question, Call::Kind kind,
                                               const RuleSet& rules, const OverrideTable& overrides,
                                               InlineQuotas inline_quotas, Resolved& resolved,
                                               std::pmr::memory_resource& memory);

/// Whether `question` has nothing but `members`, and all that are `required`, for the endpoint
/// `path`.
[[nodiscard]] std::optional<Objection> CheckMembers(const Question& question, unsigned members,
                                                    unsigned required, std::string_view path);

/// A request's attributes as rules see them: in their normal form, the client found. Points into
/// the question and `memory`.
[[nodiscard]] std::optional<Objection> ViewOf(const Question& question,
                                              const ClientAddressPolicy& policy, RequestView& view,
                                              std::pmr::memory_resource& memory);

/// The status that a store's or rule set's Error has at HTTP doors.
[[nodiscard]] int StatusOf(ErrorCode code) noexcept;

}  // namespace tidegate
