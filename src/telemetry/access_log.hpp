// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "net/descriptor.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// Writes lines about requests to a file, standard output or standard error. Reactors hand over
/// whole lines, many at a time, and a separate thread writes them, so that a full disk or a slow
/// reader delays no request. Thread-safe.
class AccessLog {
 public:
  /// Opens `stdout`, `stderr` or a file to append to. Nothing is written before Start.
  [[nodiscard]] static Result<std::unique_ptr<AccessLog>> Open(const std::string& path);
  /// Starts the thread that writes, until the destructor has written the waiting lines. Separate
  /// from Open, so that privileges can be dropped in between, while the process has one thread.
  void Start();
  /// Writes whole lines. Drops and counts them while too many bytes are waiting.
  void Write(std::string_view lines);
  /// Opens the file again under its name, because it may have been moved away.
  void Reopen();
  [[nodiscard]] std::uint64_t dropped_bytes() const noexcept { return dropped_; }

 private:
  static constexpr std::size_t kMostWaiting = 16u << 20;

  AccessLog(std::string path, net::Descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}
  void Run(const std::stop_token& stop);
  void WriteOut(std::string_view text, const std::stop_token& stop);
  [[nodiscard]] bool Writable(const std::stop_token& stop) const;

  const std::string path_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::string> waiting_;  ///< This and the next two are guarded by mutex_.
  std::size_t waiting_bytes_ = 0;
  bool reopen_ = false;
  std::atomic<std::uint64_t> dropped_{0};
  net::Descriptor file_;  ///< Used only by the writing thread.
  std::jthread thread_;   ///< Comes last: it uses all other members until it ends.
};

}  // namespace tidegate
