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

/// Tells when the content of a file may have changed: written in place, replaced by a rename, or
/// reached through symbolic links of which one was swapped, as mounted configuration folders and
/// renewed certificates do. Watches the folders along the way, or the nearest that is there, waits
/// until they have been quiet for 100 ms, 1 s at most, and calls back only if a content differs
/// from what it was. Of the contents, which may be secrets, it keeps digests only.
class ConfigWatch {
 public:
  /// `files`: a configuration and what it names, as they were when they were read.
  ConfigWatch(boost::asio::io_context& context, std::vector<FileSeen> files,
              std::function<void()> changed);
  ~ConfigWatch();
  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

  /// A configuration has come into force: it is these now, and no others.
  void Follow(std::vector<FileSeen> files);
  /// One was refused: whether it, or what is in force, will be good next time, depends on these
  /// too. With these contents it would be refused again, and is not told about.
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
  std::chrono::steady_clock::time_point latest_{};  ///< No later than this, quiet or not.
  bool waiting_ = false;                            ///< quiet_ runs.
  std::vector<int> watches_;
  alignas(8) std::array<char, 4096> buffer_;
};

}  // namespace tidegate
