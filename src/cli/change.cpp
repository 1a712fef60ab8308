// SPDX-License-Identifier: Apache-2.0
#include "cli/change.hpp"

#include <charconv>
#include <ostream>

#include "cli/exit.hpp"
#include "cli/human.hpp"
#include "cli/override_text.hpp"
#include "cli/shown_text.hpp"
#include "core/refuse.hpp"
#include "rules/duration.hpp"

namespace tidegate::cli {

namespace json = boost::json;

namespace {

bool ReadAmount(const std::string& text, std::int64_t& amount) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, amount);
  return error == std::errc{} && rest == end && amount > 0;
}

/// With --key or --part there is no IDENTITY: what stands in its place is the amount.
void TakeAmount(ChangeOptions& options) {
  const bool otherwise = !options.whom.key.empty() || !options.whom.parts.empty();
  if (otherwise && options.amount.empty()) options.amount.swap(options.whom.identity);
}

std::string_view Done(Change change) noexcept {
  switch (change) {
    case Change::kReset:
      return "reset";
    case Change::kGrant:
      return "granted";
    case Change::kRefund:
      return "refunded";
    case Change::kBan:
      return "banned";
    case Change::kAllow:
      return "allowed without being counted";
    case Change::kOverride:
      return "overridden";
    case Change::kLift:
      return "lifted";
  }
  return "done";
}

std::string_view Nothing(Change change) noexcept {
  switch (change) {
    case Change::kReset:
      return "nothing to reset (nothing was stored)";
    case Change::kGrant:
      return "nothing to grant (all of it is there)";
    case Change::kRefund:
      return "nothing to refund (that id was before, or it is too late)";
    case Change::kLift:
      return "nothing to lift (neither banned, allowed nor overridden)";
    default:
      return "nothing to do";
  }
}

void PrintChange(const ChangeOptions& options, const Members& answer, const Console& console) {
  const std::string key = answer.Has("key") ? answer.Text("key") : options.whom.Text();
  const std::string whom = Shown(answer.Text("rule") + " " + key);
  if (!answer.Yes("applied")) {
    console.out << Inked(Nothing(options.change), Ink::kWarning, console.colours) << ": " << whom
                << '\n';
    return;
  }
  console.out << Inked(Done(options.change), Ink::kGood, console.colours) << ": " << whom;
  if (answer.Has("expires_ms")) {
    console.out << ", until " << TimeStamp(answer.Whole("expires_ms"));
  } else if (options.change == Change::kBan || options.change == Change::kAllow ||
             options.change == Change::kOverride) {
    console.out << ", until it is lifted";
  }
  if (const Members before = answer.Of("replaced"); !before.empty()) {
    console.out << " (replaces " << Shown(EndedOverrideText(before)) << ")";
  } else if (const Members lifted = answer.Of("lifted"); !lifted.empty()) {
    console.out << " (it was " << Shown(EndedOverrideText(lifted)) << ")";
  }
  console.out << '\n';
  WarnIfNotRecorded(answer, console);
}

}  // namespace

std::string_view Name(Change change) noexcept {
  constexpr std::string_view kNames[] = {"reset", "grant",    "refund", "ban",
                                         "allow", "override", "lift"};
  return kNames[static_cast<std::size_t>(change)];
}

Result<AdminQuestion> QuestionOf(const ChangeOptions& given) {
  ChangeOptions options = given;
  if (options.change == Change::kGrant) TakeAmount(options);
  auto body = options.whom.Question();
  if (!body) return std::unexpected(body.error());
  if (options.change == Change::kGrant) {
    std::int64_t amount = 0;
    if (!ReadAmount(options.amount, amount)) {
      return Refuse(ErrorCode::kBadCharge,
                    "say how many units, a whole number of at least 1: RULE IDENTITY AMOUNT");
    }
    (*body)["amount"] = amount;
  }
  if (options.change == Change::kRefund) {
    if (options.id.empty())
      return Refuse(ErrorCode::kBadCharge, "--id ID is needed: a refund applies once per id");
    (*body)["id"] = options.id;
    if (options.cost != 0) (*body)["cost"] = options.cost;
    if (options.age) {
      (*body)["age_ms"] = std::chrono::floor<std::chrono::milliseconds>(*options.age).count();
    }
  }
  if (options.change == Change::kOverride) {
    if (options.limit.empty())
      return Refuse(ErrorCode::kBadCharge, "--limit is needed, as in --limit 5000/s");
    (*body)["limit"] = options.limit;
    if (options.burst != 0) (*body)["burst"] = options.burst;
  }
  if (!options.lasting.empty()) (*body)["ttl"] = options.lasting;
  if (!options.reason.empty()) (*body)["reason"] = options.reason;
  AdminQuestion question{.target = "/v1/" + std::string(Name(options.change)),
                         .body = std::move(*body),
                         .changes = true,
                         .hints = options.whom.Hints()};
  // What was said about keys of a rule outlives it.
  if (options.change == Change::kLift && options.whom.key.empty()) {
    question.hints.push_back(
        {404, "of a rule that is gone, name the key as `tidegate overrides` shows it: --key KEY"});
  }
  return question;
}

int ChangeKey(const ChangeOptions& options, const Console& console) {
  const std::string_view name = Name(options.change);
  const auto question = QuestionOf(options);
  if (!question) return Tell(name, {kUsage, Shown(question.error().message)}, false, console);
  return AskAndPrint(name, options.ask, *question, console,
                     [&](const Members& answer) { PrintChange(options, answer, console); });
}

}  // namespace tidegate::cli
