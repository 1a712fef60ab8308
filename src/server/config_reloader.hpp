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

/// Operators who wait for a reload. However many ask, one reload runs at a time and one waits: all
/// who ask before it begins get its outcome. Thread-safe.
class ReloadQueue {
 public:
  using Done = std::function<void(const ReloadReport&)>;
  struct Waiting {
    std::vector<std::string> by;  ///< Each name once.
    std::vector<Done> done;
  };

  /// Returns true if nobody waited: the caller must begin a reload.
  [[nodiscard]] bool Add(const std::string& by, Done done);
  /// A reload begins: returns who waits for it. From now on they wait for the next one.
  [[nodiscard]] Waiting Take();

 private:
  std::mutex mutex_;
  Waiting waiting_;
};

/// Reads the configuration file again and has the server use it: when the file changes, or one that
/// it names, and when an operator or a signal asks for it. Everything on the context's thread.
class ConfigReloader {
 public:
  /// `on_applied` is called with each configuration that came into force.
  struct Options {
    std::string file;  ///< Empty: the configuration did not come from a file.
    std::function<void(const Config&)> on_applied = [](const Config&) {};
  };
  /// `seen`: the file and those that it names, as they were when they were read. All outlive this.
  ConfigReloader(boost::asio::io_context& context, Server& server, Options options,
                 std::vector<FileSeen> seen);

  /// `why` is for the log.
  ReloadReport Reload(std::string_view why);
  /// The server is shutting down: nothing is reloaded any more.
  void Stop() noexcept { stopping_ = true; }

 private:
  void ReloadAsAsked();

  Server& server_;
  const Options options_;
  ReloadQueue queue_;
  std::unique_ptr<ConfigWatch> watch_;  ///< nullptr: there is no file.
  bool stopping_ = false;
};

/// Logs the first ten problems of a configuration file, errors before warnings.
void LogProblems(Problems problems, const std::string& file);

}  // namespace tidegate
