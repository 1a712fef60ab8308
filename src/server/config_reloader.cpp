// SPDX-License-Identifier: Apache-2.0
#include "server/config_reloader.hpp"

#include <sys/inotify.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <ranges>

#include "telemetry/log.hpp"

namespace tidegate {
namespace {

namespace fs = std::filesystem;
using boost::system::error_code;

constexpr int kMaxLinks = 16;
constexpr auto kQuiet = std::chrono::milliseconds{100};
constexpr auto kLatest = std::chrono::seconds{1};

/// Adds every folder in which a change can affect the file that the path `file` resolves to.
void AddFoldersOf(const std::string& file, std::vector<fs::path>& folders) {
  std::error_code error;
  fs::path path = fs::absolute(file, error);
  for (int links = 0; links < kMaxLinks; ++links) {
    // A folder on the path may be a link too, such as `..data` in a mounted configuration folder.
    fs::path prefix;
    const bool has_link = std::ranges::any_of(path, [&](const fs::path& part) {
      return fs::is_symlink(fs::symlink_status(prefix /= part, error));
    });
    if (!has_link) break;
    const fs::path parent = prefix.parent_path();
    folders.push_back(parent);
    const fs::path target = fs::read_symlink(prefix, error);
    if (error) break;
    const fs::path rest = path.lexically_relative(prefix);
    const fs::path next = parent / target;  // `target` itself, if it is absolute.
    path = (rest == "." ? next : next / rest).lexically_normal();
  }
  path = path.parent_path();
  while (!fs::is_directory(path, error) && path.has_relative_path()) path = path.parent_path();
  folders.push_back(path);
}

std::vector<fs::path> FoldersOf(const std::vector<WatchedFile>& files) {
  std::vector<fs::path> folders;
  for (const WatchedFile& file : files) AddFoldersOf(file.path, folders);
  std::ranges::sort(folders);
  folders.erase(std::ranges::unique(folders).begin(), folders.end());
  return folders;
}

}  // namespace

ConfigWatch::ConfigWatch(boost::asio::io_context& context, std::vector<WatchedFile> files,
                         std::function<void()> changed)
    : files_(std::move(files)), changed_(std::move(changed)), events_(context), quiet_(context) {
  const int descriptor = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0) return;  // Reloads by signal still work.
  events_.assign(descriptor);
  Wait();
  WatchOthers();
}

void ConfigWatch::Follow(std::vector<WatchedFile> files) {
  const bool same = std::ranges::equal(files, files_, {}, &WatchedFile::path, &WatchedFile::path);
  files_ = std::move(files);
  if (!same) WatchOthers();
}

void ConfigWatch::FollowAlso(const std::vector<WatchedFile>& files) {
  const std::size_t before = files_.size();
  for (const WatchedFile& file : files) {
    const auto known = std::ranges::find(files_, file.path, &WatchedFile::path);
    if (known == files_.end()) {
      files_.push_back(file);
    } else {
      *known = file;  // The callback was called for this content already.
    }
  }
  if (files_.size() > before) WatchOthers();
}

void ConfigWatch::WatchOthers() {
  if (!events_.is_open()) return;
  WatchFolders();
  OnEvent();  // A file may have changed after it was read and before it was watched.
}

void ConfigWatch::WatchFolders() {
  const int descriptor = events_.native_handle();
  std::vector<int> now;
  for (const fs::path& folder : FoldersOf(files_)) {
    // IN_ATTRIB: a key may be written first and made readable afterwards.
    const int watch = inotify_add_watch(descriptor, folder.c_str(),
                                        IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_DELETE |
                                            IN_ATTRIB | IN_MOVE_SELF | IN_ONLYDIR);
    if (watch >= 0) now.push_back(watch);
  }
  for (const int old : watches_) {
    if (std::ranges::find(now, old) == now.end()) inotify_rm_watch(descriptor, old);
  }
  watches_ = std::move(now);
}

void ConfigWatch::Wait() {
  events_.async_read_some(boost::asio::buffer(buffer_),
                          [this](const error_code& error, std::size_t) {
                            if (error) return;
                            OnEvent();
                            Wait();
                          });
}

void ConfigWatch::OnEvent() {
  const auto now = std::chrono::steady_clock::now();
  if (!std::exchange(waiting_, true)) latest_ = now + kLatest;
  quiet_.expires_at(std::min(now + kQuiet, latest_));
  quiet_.async_wait([this](const error_code& disturbed) {
    if (disturbed) return;
    waiting_ = false;
    Check();
  });
}

void ConfigWatch::Check() {
  WatchFolders();
  bool changed = false;
  for (WatchedFile& file : files_) {
    const ContentDigest now = CurrentDigest(file);
    // A file that is being replaced may be absent for a moment, which is not a change yet.
    if (now.none() || now == file.content) continue;
    file.content = now;
    changed = true;
  }
  if (changed) changed_();
}

ConfigReloader::ConfigReloader(boost::asio::io_context& context, Server& server, Options options,
                               std::vector<WatchedFile> seen)
    : server_(server), options_(std::move(options)) {
  // Requests of operators arrive on another thread.
  server_.SetReloader([this, &context](const std::string& by, const auto& done) {
    boost::asio::post(context, [this, &context, request = Request{by, done}] {
      requests_.push_back(request);
      if (requests_.size() == 1) boost::asio::post(context, [this] { RunRequestedReload(); });
    });
  });
  if (options_.file.empty()) return;
  watch_ = std::make_unique<ConfigWatch>(context, std::move(seen),
                                         [this] { (void)Reload("a file changed"); });
}

void ConfigReloader::RunRequestedReload() {
  const std::vector<Request> requests = std::exchange(requests_, {});
  std::string why = "requested by";
  for (const Request& request : requests) {
    const auto first = std::ranges::find(requests, request.by, &Request::by);
    if (&*first == &request) why += " " + request.by;  // Names each operator once.
  }
  const ReloadReport report = Reload(why);
  for (const Request& request : requests) request.done(report);
}

ReloadReport ConfigReloader::Reload(std::string_view why) {
  if (stopping_) return {.outcome = ReloadReport::Outcome::kStopping};
  if (options_.file.empty()) {
    Log::Info("nothing to reload: the demo has no configuration file");
    return {.outcome = ReloadReport::Outcome::kNoFile};
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
    return {.outcome = ReloadReport::Outcome::kRefused, .problems = std::move(reading.problems)};
  }
  watch_->Follow(std::move(reading.files));
  options_.on_applied(*reading.config);
  ReloadReport report{.outcome = ReloadReport::Outcome::kApplied,
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
  std::ranges::stable_sort(problems, {}, &Problem::severity);  // Errors come first.
  for (const Problem& problem : problems | std::views::take(kMost)) {
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
