// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "admin/reload.hpp"
#include "rules/config.hpp"
#include "rules/content_digest.hpp"
#include "server/config_watch.hpp"
#include "server/server.hpp"

namespace tidegate {

/// Collects the reload requests of operators. However many there are, one reload runs at a time and
/// one waits: every request made before a reload begins gets the outcome of that reload.
/// Thread-safe.
class ReloadQueue {
 public:
  using Done = std::function<void(const ReloadReport&)>;
  struct Waiting {
    std::vector<std::string> by;  ///< Names of the operators, each once.
    std::vector<Done> done;
  };

  /// Adds a request. Returns true if it is the only one waiting: the caller must begin a reload.
  [[nodiscard]] bool Add(const std::string& by, Done done);
  /// Called when a reload begins: returns the requests that wait for it, and empties the queue.
  [[nodiscard]] Waiting Take();

 private:
  std::mutex mutex_;
  Waiting waiting_;
};

/// Reads the configuration file again and applies it to the server when the file or one that it
/// names changes, and when an operator or a signal requests it. Not thread-safe: must be used on
/// the context's thread.
class ConfigReloader {
 public:
  struct Options {
    std::string file;  ///< Empty: the configuration did not come from a file.
    /// Called with each configuration that was applied.
    std::function<void(const Config&)> on_applied = [](const Config&) {};
  };
  /// `seen` are the file and the files that it names, as they were when they were read. Context and
  /// server must outlive this object.
  ConfigReloader(boost::asio::io_context& context, Server& server, Options options,
                 std::vector<FileSeen> seen);

  /// Reloads now. `why` is for the log.
  ReloadReport Reload(std::string_view why);
  /// Called when the server shuts down: later reloads do nothing.
  void Stop() noexcept { stopping_ = true; }

 private:
  void RunQueuedReload();

  Server& server_;
  const Options options_;
  ReloadQueue queue_;
  std::unique_ptr<ConfigWatch> watch_;  ///< nullptr: there is no file.
  bool stopping_ = false;
};

/// Logs the first ten problems of a configuration file, errors before warnings.
void LogProblems(Problems problems, const std::string& file);

}  // namespace tidegate
