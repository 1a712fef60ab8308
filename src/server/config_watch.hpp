// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <string>
#include <vector>

namespace tidegate {

/// Tells when a file's content may have changed: written in place, replaced by a rename, or reached
/// through symbolic links of which one was swapped, as mounted configuration folders do. Watches
/// the folders along the way, waits until they have been quiet for 100 ms, and calls back only if
/// the content differs from what it was.
class ConfigWatch {
 public:
  ConfigWatch(boost::asio::io_context& context, std::string file, std::function<void()> changed);
  ~ConfigWatch();
  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

 private:
  void WatchFolders();
  void Wait();
  void Check();
  [[nodiscard]] std::string Content() const;

  const std::string file_;
  const std::function<void()> changed_;
  boost::asio::posix::stream_descriptor events_;
  boost::asio::steady_timer quiet_;
  std::vector<int> watches_;
  std::string seen_;
  alignas(8) std::array<char, 4096> buffer_;
};

}  // namespace tidegate
