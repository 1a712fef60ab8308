// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "admin/admin_call.hpp"
#include "admin/audit.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

using net::HttpExchange;

/// The largest number of problems listed.
constexpr std::size_t kMostProblems = 100;

/// Writes `,"problems":[...],"left_out":0`, with errors before warnings.
void WriteProblems(net::OutBuffer& out, const Problems& problems) {
  std::size_t written = 0;
  const auto write = [&](Problem::Severity severity, std::string_view name) {
    for (const Problem& problem : problems) {
      if (problem.severity != severity || written == kMostProblems) continue;
      out << (written++ == 0 ? "" : ",") << R"({"severity":")" << name << '"';
      if (!problem.at.file.is_main()) {
        out << R"(,"file":")";
        net::WriteJsonText(out, problem.at.file.path());
        out << '"';
      }
      out << R"(,"line":)" << problem.at.line << R"(,"column":)" << problem.at.column
          << R"(,"in":")";
      net::WriteJsonText(out, problem.where);
      out << R"(","message":")";
      net::WriteJsonText(out, problem.message);
      out << "\"}";
    }
  };
  out << R"(,"problems":[)";
  write(Problem::Severity::kError, "error");
  write(Problem::Severity::kWarning, "warning");
  out << R"(],"left_out":)" << problems.size() - written;
}

std::string Counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void AnswerRefused(HttpExchange& exchange, const Problems& problems) {
  const auto errors = std::ranges::count(problems, Problem::Severity::kError, &Problem::severity);
  net::OutBuffer members;
  WriteProblems(members, problems);
  AnswerProblemWith(exchange, 422,
                    "the new configuration has " +
                        Counted(static_cast<std::size_t>(errors), "error") +
                        ": the old one stays in force",
                    members.view());
}

void AnswerApplied(AdminContext& context, HttpExchange& exchange, const AuditEntry& record,
                   const ReloadReport& report) {
  context.Count(AdminAction::kReload);
  context.shared_overrides.Note(
      record.Text(), true, [&exchange, report](const Result<SharedOverrides::Change>& noted) {
        net::OutBuffer body;
        body << R"({"applied":true,"rules":)" << report.rules << R"(,"needs_restart":[)";
        for (const std::string& part : report.needs_restart) {
          body << (&part == &report.needs_restart.front() ? "\"" : ",\"") << part << '"';
        }
        body << ']';
        if (!noted) {
          Log::Warning("cannot write an operator change to the fleet's audit log");
          body << R"(,"recorded":false)";
        }
        WriteProblems(body, report.problems);
        body << "}\n";
        AnswerJson(exchange, body.view());
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
