// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace tidegate::service {

/// Captures what this process writes to standard error while the object exists. Text() may be
/// called while other threads write.
class CapturedStderr {
 public:
  CapturedStderr() {
    std::string name = "/tmp/tidegate-stderr-XXXXXX";
    file_ = mkstemp(name.data());
    unlink(name.c_str());
    fcntl(file_, F_SETFL, O_APPEND);
    before_ = dup(STDERR_FILENO);
    dup2(file_, STDERR_FILENO);
  }
  ~CapturedStderr() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(file_);
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  /// Returns everything captured so far.
  [[nodiscard]] std::string Text() const {
    struct stat state {};
    fstat(file_, &state);
    std::string text(static_cast<std::size_t>(state.st_size), '\0');
    const ssize_t got = pread(file_, text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

 private:
  int file_ = -1;
  int before_ = -1;
};

}  // namespace tidegate::service
