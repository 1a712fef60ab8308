// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace tidegate {

/// Tells when a file's content may have changed: written in place, replaced by a rename, or reached
/// through symbolic links of which one was swapped, as mounted configuration folders do. Watches
/// the folders along the way, or the nearest that is there, waits until they have been quiet for
/// 100 ms, 1 s at most, and calls back only if the content differs from what it was.
class ConfigWatch {
 public:
  /// `seen`: the content that is in force.
  ConfigWatch(boost::asio::io_context& context, std::string file, std::string seen,
              std::function<void()> changed);
  ~ConfigWatch();
  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

 private:
  void WatchFolders();
  void Wait();
  void OnEvent();
  void Check();

  const std::string file_;
  const std::function<void()> changed_;
  boost::asio::posix::stream_descriptor events_;
  boost::asio::steady_timer quiet_;
  std::chrono::steady_clock::time_point latest_{};  ///< No later than this, quiet or not.
  bool waiting_ = false;                            ///< quiet_ runs.
  std::vector<int> watches_;
  std::string seen_;
  alignas(8) std::array<char, 4096> buffer_;
};

/// All of a file; empty if it cannot be read.
[[nodiscard]] std::string ReadWhole(const std::string& file);

}  // namespace tidegate
