// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ranges>

#include "admin/admin_call.hpp"
#include "admin/audit.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

namespace json = boost::json;
using net::HttpExchange;

/// The largest number of problems listed.
constexpr std::size_t kMostProblems = 100;

/// Returns the members `problems`, with errors before warnings, and `left_out`.
json::object ProblemsJson(Problems problems) {
  std::ranges::stable_sort(problems, {}, &Problem::severity);  // Errors come first.
  json::array listed;
  for (const Problem& problem : problems | std::views::take(kMostProblems)) {
    listed.push_back(ProblemJson(problem, "in"));
  }
  const std::size_t left_out = problems.size() - listed.size();
  return {{"problems", std::move(listed)}, {"left_out", left_out}};
}

std::string Counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void AnswerRefused(HttpExchange& exchange, const Problems& problems) {
  const auto errors = std::ranges::count(problems, Problem::Severity::kError, &Problem::severity);
  AnswerProblemWith(exchange, 422,
                    "the new configuration has " +
                        Counted(static_cast<std::size_t>(errors), "error") +
                        ": the old one stays in force",
                    ProblemsJson(problems));
}

void AnswerApplied(AdminContext& context, HttpExchange& exchange, const AuditEntry& record,
                   const ReloadReport& report) {
  context.Count(AdminAction::kReload);
  context.shared_overrides.Note(
      record.Text(), true, [&exchange, report](const Result<SharedOverrides::Change>& noted) {
        const auto& restart = report.needs_restart;
        json::object body{{"applied", true},
                          {"rules", report.rules},
                          {"needs_restart", json::array(restart.begin(), restart.end())}};
        if (!noted) {
          Log::Warning("cannot write the reload to the fleet's audit log: only this log has it");
          body["recorded"] = false;
        }
        AddAll(body, ProblemsJson(report.problems));
        AnswerJson(exchange, body);
      });
}

}  // namespace

void ReloadFor(AdminContext& context, HttpExchange& exchange, const std::string& by) {
  AuditEntry record = AuditEntry::Of(context.node, by, exchange, Name(AdminAction::kReload));
  if (!context.reload) {
    return net::AnswerProblem(exchange, 409, "this server has no configuration file to reload");
  }
  context.reload(
      by, [&context, &exchange, record = std::move(record)](const ReloadReport& report) mutable {
        switch (report.outcome) {
          case ReloadReport::Outcome::kNoFile:
            return net::AnswerProblem(exchange, 409,
                                      "nothing to reload: the demo has no configuration file");
          case ReloadReport::Outcome::kStopping:
            return net::AnswerProblem(exchange, 503, "shutting down");
          case ReloadReport::Outcome::kRefused:
            record.LogFailed("the new configuration has errors", Name(ChangeOutcome::kNotApplied));
            return AnswerRefused(exchange, report.problems);
          case ReloadReport::Outcome::kApplied:
            record.detail = Counted(report.rules, "rule");
            record.LogDone(true);
            return AnswerApplied(context, exchange, record, report);
        }
      });
}

}  // namespace tidegate
