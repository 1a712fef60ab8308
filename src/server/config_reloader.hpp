// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admin/admin_call.hpp"
#include "config/config.hpp"
#include "config/files.hpp"
#include "server/server.hpp"

namespace tidegate {

/// Watches a set of files and calls back when the content of one has changed: the file was written
/// or replaced by a rename, or a symbolic link on its path was replaced, as with mounted folders
/// and renewed certificates. Also calls back when a pattern matches other files than before. For a
/// pattern of folders, watches the folders before its first wildcard, and those of the files that
/// matched.
///
/// Watches every folder on the path of a file, or the nearest one that exists. Waits until there
/// were no events for 100 ms, but at most 1 s, and calls back only if the content of a file differs
/// from its last content. Keeps only digests of the contents, because these may be secrets.
class ConfigWatch {
 public:
  /// `files` are a configuration and the files that it names, as they were when they were read.
  ConfigWatch(boost::asio::io_context& context, std::vector<WatchedFile> files,
              std::function<void()> changed);

  /// Called when a configuration was applied: watches exactly its files from now on.
  void Follow(std::vector<WatchedFile> files);
  /// Called when a configuration was rejected: watches its files too, because a change to one of
  /// them may repair it. Does not call back while they have the rejected contents.
  void FollowAlso(const std::vector<WatchedFile>& files);

 private:
  void WatchFolders();
  void WatchOthers();
  void Wait();
  void OnEvent();
  void Check();

  std::vector<WatchedFile> files_;
  const std::function<void()> changed_;
  boost::asio::posix::stream_descriptor events_;
  boost::asio::steady_timer quiet_;
  std::chrono::steady_clock::time_point latest_{};  ///< The latest time of the next check.
  bool waiting_ = false;                            ///< True while quiet_ is running.
  std::vector<int> watches_;
  alignas(8) std::array<char, 4096> buffer_;
};

/// Reads the configuration file again and applies it to the server when the file or one that it
/// names changes, and when an operator or a signal requests it. Only one reload runs at a time, and
/// at most one waits: every request made before a reload begins gets the outcome of that reload.
/// Not thread-safe: must be used on the context's thread.
class ConfigReloader {
 public:
  struct Options {
    std::string file;  ///< Empty: the configuration did not come from a file.
    /// Called with each configuration that was applied.
    std::function<void(const Config&)> on_applied = [](const Config&) {};
  };
  /// `seen` are the configuration file and the files that it names, as they were when they were
  /// read. Context and server must outlive this object.
  ConfigReloader(boost::asio::io_context& context, Server& server, Options options,
                 std::vector<WatchedFile> seen);

  /// Reloads now. `why` is for the log.
  ReloadReport Reload(std::string_view why);
  /// Called when the server shuts down: later reloads do nothing.
  void Stop() noexcept { stopping_ = true; }

 private:
  /// A reload that an operator has requested.
  struct Request {
    std::string by;
    std::function<void(const ReloadReport&)> done;
  };

  void RunRequestedReload();

  Server& server_;
  const Options options_;
  std::vector<Request> requests_;       ///< Requests that wait for the next reload.
  std::unique_ptr<ConfigWatch> watch_;  ///< nullptr: there is no file.
  bool stopping_ = false;
};

/// Logs the first ten problems of a configuration file, errors before warnings.
void LogProblems(Problems problems, const std::string& file);

}  // namespace tidegate
