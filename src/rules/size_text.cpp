// SPDX-License-Identifier: Apache-2.0
#include "rules/size_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>

namespace tidegate {
namespace {

struct Unit {
  std::string_view name;
  int shift;
};
constexpr std::array<Unit, 4> kUnits = {{{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}}};

std::unexpected<Error> RefuseSize(std::string_view text, std::string_view why) {
  std::string message = "`";
  message += text;
  message += "` ";
  message += why;
  return std::unexpected(Error{ErrorCode::kBadQuota, std::move(message)});
}

}  // namespace

Result<std::int64_t> ParseSize(std::string_view text) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  const std::string_view name{rest, static_cast<std::size_t>(end - rest)};
  const auto* const unit = std::find_if(kUnits.begin(), kUnits.end(),
                                        [&](const Unit& known) { return known.name == name; });
  if (error == std::errc::invalid_argument || unit == kUnits.end() || text.front() == '-' ||
      (text.size() > 1 && text.front() == '0')) {
    return RefuseSize(
        text,
        "is not a size: write a whole number of bytes, or one with KiB, MiB or GiB, as "
        "in 256MiB");
  }
  if (error == std::errc::result_out_of_range ||
      count > std::numeric_limits<std::int64_t>::max() >> unit->shift) {
    return RefuseSize(text, "is too large a size");
  }
  return count << unit->shift;
}

}  // namespace tidegate
