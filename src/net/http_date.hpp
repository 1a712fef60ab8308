// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <ctime>
#include <string_view>

namespace tidegate::net {

/// The value of the Date field, written anew once a second.
class HttpDate {
 public:
  /// `Sun, 06 Nov 1994 08:49:37 GMT`
  [[nodiscard]] std::string_view Now() noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec != second_) Write(now.tv_sec);
    return {text_.data(), text_.size()};
  }

 private:
  void Write(std::time_t second) noexcept;

  std::time_t second_ = -1;
  std::array<char, 29> text_{};
};

}  // namespace tidegate::net
