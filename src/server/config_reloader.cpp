// SPDX-License-Identifier: Apache-2.0
#include "server/config_reloader.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "telemetry/log.hpp"

namespace tidegate {

bool ReloadQueue::Add(const std::string& by, Done done) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(waiting_.by, by) == waiting_.by.end()) waiting_.by.push_back(by);
  waiting_.done.push_back(std::move(done));
  return waiting_.done.size() == 1;
}

ReloadQueue::Waiting ReloadQueue::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

ConfigReloader::ConfigReloader(boost::asio::io_context& context, Server& server, Options options,
                               std::vector<FileSeen> seen)
    : server_(server), options_(std::move(options)) {
  // Requests of operators arrive on another thread.
  server_.SetReloader([this, &context](const std::string& by, const ReloadQueue::Done& done) {
    if (queue_.Add(by, done)) boost::asio::post(context, [this] { RunQueuedReload(); });
  });
  if (options_.file.empty()) return;
  watch_ = std::make_unique<ConfigWatch>(context, std::move(seen),
                                         [this] { (void)Reload("a file changed"); });
}

void ConfigReloader::RunQueuedReload() {
  const ReloadQueue::Waiting waiting = queue_.Take();
  std::string why = "requested by";
  for (const std::string& name : waiting.by) why += " " + name;
  const ReloadReport report = Reload(why);
  for (const auto& done : waiting.done) done(report);
}

ReloadReport ConfigReloader::Reload(std::string_view why) {
  using Outcome = ReloadReport::Outcome;
  if (stopping_) return {.outcome = Outcome::kStopping};
  if (options_.file.empty()) {
    Log::Info("nothing to reload: the demo has no file");
    return {.outcome = Outcome::kNoFile};
  }
  ConfigReading reading = LoadConfig(options_.file);
  bool applied = false;
  if (reading.config) {
    applied = server_.Reload(*reading.config, reading.problems);
  } else {
    server_.NoteRefusedReload();
  }
  LogProblems(reading.problems, options_.file);
  if (!applied) {
    watch_->FollowAlso(reading.files);
    Log::Error("the new configuration has errors: the old one stays in force",
               {{"file", options_.file}, {"why", std::string(why)}});
    return {.outcome = Outcome::kRefused, .problems = std::move(reading.problems)};
  }
  watch_->Follow(std::move(reading.files));
  options_.on_applied(*reading.config);
  ReloadReport report{.outcome = Outcome::kApplied,
                      .rules = server_.rule_count(),
                      .needs_restart = server_.NeedsRestart(*reading.config),
                      .problems = std::move(reading.problems)};
  for (const std::string& section : report.needs_restart) {
    Log::Warning("restart required: `" + section + "` changed", {{"file", options_.file}});
  }
  Log::Info("reloaded", {{"file", options_.file},
                         {"why", std::string(why)},
                         {"rules", std::to_string(report.rules)}});
  return report;
}

void LogProblems(Problems problems, const std::string& file) {
  constexpr std::size_t kMost = 10;
  std::ranges::stable_partition(problems, [](const Problem& problem) {
    return problem.severity == Problem::Severity::kError;
  });
  for (std::size_t i = 0; i < std::min(problems.size(), kMost); ++i) {
    const Problem& problem = problems[i];
    const auto write = problem.severity == Problem::Severity::kError ? &Log::Error : &Log::Warning;
    // A problem without a line concerns the whole file: for example, it cannot be read.
    std::string at(problem.FileOr(file));
    if (problem.at.line == 0 && problem.where.empty()) {
      write(problem.message, {{"at", at}});
      continue;
    }
    if (problem.at.line > 0) {
      at += ":" + std::to_string(problem.at.line) + ":" + std::to_string(problem.at.column);
    }
    write(problem.message, {{"at", at}, {"in", problem.where}});
  }
  if (problems.size() > kMost) {
    Log::Warning("the configuration has more problems: see `tidegate check-config`",
                 {{"file", file}, {"more", std::to_string(problems.size() - kMost)}});
  }
}

}  // namespace tidegate
