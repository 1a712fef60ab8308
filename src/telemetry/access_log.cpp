// SPDX-License-Identifier: Apache-2.0
#include "telemetry/access_log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <expected>
#include <utility>

#include "telemetry/log.hpp"

namespace tidegate {
namespace {

net::Descriptor OpenPath(const std::string& path) {
  if (path == "stdout") return net::Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  if (path == "stderr") return net::Descriptor(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  return net::Descriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
}

}  // namespace

Result<std::unique_ptr<AccessLog>> AccessLog::Open(const std::string& path) {
  net::Descriptor file = OpenPath(path);
  if (!file) {
    return std::unexpected(Error{
        ErrorCode::kBadConfig, "cannot open the access log " + path + ": " + std::strerror(errno)});
  }
  return std::unique_ptr<AccessLog>(new AccessLog(path, std::move(file)));
}

void AccessLog::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void AccessLog::Write(std::string_view lines) {
  if (lines.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_bytes_ + lines.size() > kMostWaiting) {
      dropped_ += lines.size();
      return;
    }
    waiting_bytes_ += lines.size();
    waiting_.emplace_back(lines);
  }
  wake_.notify_one();
}

void AccessLog::Reopen() {
  {
    const std::lock_guard lock(mutex_);
    reopen_ = true;
  }
  wake_.notify_one();
}

/// Waits until the file takes bytes. Returns false if the log is being closed.
bool AccessLog::Writable(const std::stop_token& stop) const {
  while (true) {
    pollfd ready{file_.get(), POLLOUT, 0};
    if (::poll(&ready, 1, 100) > 0) return true;
    if (stop.stop_requested()) return false;
  }
}

void AccessLog::WriteOut(std::string_view text, const std::stop_token& stop) {
  struct stat about {};
  const bool file = fstat(file_.get(), &about) == 0 && S_ISREG(about.st_mode);
  while (!text.empty()) {
    // A write of up to PIPE_BUF to a writable pipe never waits, so a reader that does not read
    // cannot keep the process from ending.
    if (!file && !Writable(stop)) {
      dropped_ += text.size();
      return;
    }
    const std::size_t most = file ? text.size() : std::min<std::size_t>(text.size(), PIPE_BUF);
    const ssize_t written = ::write(file_.get(), text.data(), most);
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) {
      dropped_ += text.size();
      return;
    }
  }
}

void AccessLog::Run(const std::stop_token& stop) {
  // Signals are handled by another thread.
  sigset_t all;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, stop, [this] { return reopen_ || !waiting_.empty(); });
    if (std::exchange(reopen_, false)) {
      if (net::Descriptor again = OpenPath(path_)) {
        file_ = std::move(again);
      } else {
        Log::Error("cannot reopen the access log; writing to the old file",
                   {{"file", path_}, {"error", std::strerror(errno)}});
      }
    }
    if (waiting_.empty()) {
      if (stop.stop_requested()) return;
      continue;
    }
    const std::string text = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= text.size();
    lock.unlock();
    WriteOut(text, stop);
    lock.lock();
  }
}

}  // namespace tidegate
