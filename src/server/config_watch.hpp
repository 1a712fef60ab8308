// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <vector>

#include "rules/content_digest.hpp"

namespace tidegate {

/// Watches a set of files and calls back when the content of one has changed: it was written in
/// place, replaced by a rename, or reached through a symbolic link that was replaced, as with
/// mounted configuration folders and renewed certificates. Calls back too when a pattern matches
/// other files than before. Where a folder in a pattern is a pattern itself, only the folders
/// before it are watched, and those of the files that matched.
///
/// Watches every folder on the path of a file, or the nearest one that exists. Waits until there
/// were no events for 100 ms, but at most 1 s, and calls back only if a content differs from the
/// last one. Keeps only digests of the contents, which may be secrets.
class ConfigWatch {
 public:
  /// `files` are a configuration and the files that it names, as they were when they were read.
  ConfigWatch(boost::asio::io_context& context, std::vector<FileSeen> files,
              std::function<void()> changed);
  ~ConfigWatch();
  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

  /// Called when a configuration was applied: watches exactly its files from now on.
  void Follow(std::vector<FileSeen> files);
  /// Called when a configuration was rejected: watches its files too, because a change to one of
  /// them may repair it. Does not call back while they have the rejected contents.
  void FollowAlso(const std::vector<FileSeen>& files);

 private:
  void WatchFolders();
  void WatchOthers();
  void Wait();
  void OnEvent();
  void Check();

  std::vector<FileSeen> files_;
  const std::function<void()> changed_;
  boost::asio::posix::stream_descriptor events_;
  boost::asio::steady_timer quiet_;
  std::chrono::steady_clock::time_point latest_{};  ///< When to check at the latest.
  bool waiting_ = false;                            ///< quiet_ is running.
  std::vector<int> watches_;
  alignas(8) std::array<char, 4096> buffer_;
};

}  // namespace tidegate
