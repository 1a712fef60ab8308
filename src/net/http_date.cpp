// SPDX-License-Identifier: Apache-2.0
#include "net/http_date.hpp"

#include <cstdio>
#include <cstring>

namespace tidegate::net {

// strftime would use the locale's names.
void HttpDate::Write(std::time_t second) noexcept {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  gmtime_r(&second, &utc);
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[utc.tm_wday],
                utc.tm_mday, kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min,
                utc.tm_sec);
  std::memcpy(text_.data(), text, text_.size());
  second_ = second;
}

}  // namespace tidegate::net
