// SPDX-License-Identifier: Apache-2.0
#include "cli/rule_verdict.hpp"

#include "cli/human.hpp"
#include "cli/override_text.hpp"
#include "rules/duration.hpp"

namespace tidegate::cli {
namespace {

/// Without `allowed` nobody asked the store: an operator's word stood before it, about this rule's
/// key or about that of another rule.
RuleVerdict NotAsked(const Members& rule) {
  const Members given = rule.Of("override");
  const std::string kind = given.Text("kind");
  if (kind == "allow") return {"allows, uncounted: " + OverrideGiver(given), Ink::kGood};
  // In shadow mode as well: a ban is said about this one key.
  if (kind == "ban") return {"banned " + OverrideGiver(given), Ink::kBad};
  return {"not asked", Ink::kQuiet};
}

std::string Left(const Members& rule) {
  const Members before = rule.Of("before");
  if (!before.Has("remaining")) return {};
  std::string text = Count(before.Whole("remaining"));
  // A node's share is less than the capacity.
  if (before.Has("of")) {
    text += " of " + Count(before.Whole("of"));
  } else if (rule.Has("capacity")) {
    text += " of " + Count(rule.Whole("capacity"));
  }
  text += " left";
  // The same as before where another rule refuses the request: nothing is charged then.
  const Members after = rule.Of("after");
  if (rule.Yes("allowed") && after.Has("remaining") &&
      after.Whole("remaining") != before.Whole("remaining")) {
    text += ", " + Count(after.Whole("remaining")) + " after it";
  }
  return text;
}

std::string Again(const Members& rule) {
  if (rule.Yes("never")) return ", and it can never pass: the cost is above the limit";
  if (!rule.Has("retry_after_ms")) return {};
  return ", try again in " + FormatDuration(rule.Ms("retry_after_ms"));
}

/// Red is for what is refused; a shadow refuses nobody, and a policy is no certainty.
Ink InkOf(const Members& rule) {
  if (!rule.Yes("allowed")) return rule.Text("mode") == "shadow" ? Ink::kWarning : Ink::kBad;
  return WithoutStore(rule) ? Ink::kWarning : Ink::kGood;
}

}  // namespace

bool WithoutStore(const Members& rule) {
  const std::string decided_by = rule.Text("decided_by");
  return decided_by == "local" || decided_by == "open" || decided_by == "closed";
}

RuleVerdict RuleVerdict::Of(const Members& rule) {
  if (!rule.Has("allowed")) return NotAsked(rule);
  const bool allowed = rule.Yes("allowed");
  const bool shadow = rule.Text("mode") == "shadow";
  const bool policy = WithoutStore(rule);
  std::string text;
  if (policy) {
    const std::string reason = rule.Text("reason");
    text = "the store does not answer" + (reason.empty() ? "" : " (" + reason + ")") +
           ", and the policy is " + rule.Text("decided_by") + ": ";
  }
  text += shadow ? (allowed ? "would allow" : "would deny") : (allowed ? "allows" : "denies");
  if (rule.Text("decided_by") == "local") text += " by this node's share";
  if (const std::string left = Left(rule); !left.empty()) text += (policy ? ", " : ": ") + left;
  return {text + Again(rule), InkOf(rule)};
}

}  // namespace tidegate::cli
