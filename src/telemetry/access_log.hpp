// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "net/descriptor.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// Where lines about requests go: a file, standard output or standard error. Reactors hand over
/// whole lines, many at a time; a thread of its own writes them, so that a full disk or a reader
/// who is asleep keeps nobody from being served. Thread-safe.
class AccessLog {
 public:
  /// `stdout`, `stderr` or a file that is appended to. Nothing is written before Start.
  [[nodiscard]] static Result<std::unique_ptr<AccessLog>> Open(const std::string& path);
  /// Writes the lines that wait, if it was started.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  /// Starts the thread that writes. Apart from Open, so that privileges can be dropped in between,
  /// while the process has one thread only.
  void Start();
  /// Lines, each with its end. Dropped, and counted, while too much is waiting to be written.
  void Write(std::string_view lines);
  /// A file that was moved away is opened anew under its name.
  void Reopen();
  [[nodiscard]] std::uint64_t dropped_bytes() const noexcept { return dropped_; }

 private:
  static constexpr std::size_t kMostWaiting = 16u << 20;

  AccessLog(std::string path, net::Descriptor file);
  void Run();
  void WriteOut(std::string_view text);
  [[nodiscard]] bool Writable();

  const std::string path_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::string> waiting_;  ///< Guarded by mutex_, as the next.
  std::size_t waiting_bytes_ = 0;
  bool reopen_ = false;
  bool stop_ = false;
  std::atomic<std::uint64_t> dropped_{0};
  net::Descriptor file_;  ///< The thread's.
  std::thread thread_;
};

}  // namespace tidegate
