// SPDX-License-Identifier: Apache-2.0
#include "gateway/behaviour/log_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "gateway/behaviour/wire.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {

std::vector<boost::json::object> LogFile::Lines(std::size_t count) const {
  const auto ends = [this] {
    const std::string all = text();
    return static_cast<std::size_t>(std::ranges::count(all, '\n'));
  };
  EXPECT_TRUE(test::WaitUntil([&] { return ends() >= count; }));
  std::vector<boost::json::object> lines;
  std::istringstream all(text());
  for (std::string line; std::getline(all, line);) {
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(line, error);
    EXPECT_TRUE(!error && value.is_object()) << line;
    lines.push_back(value.is_object() ? value.get_object() : boost::json::object{});
  }
  EXPECT_EQ(lines.size(), count) << text();
  lines.resize(count);
  return lines;
}

boost::json::object LogFile::Line() const { return Lines(1).front(); }

}  // namespace tidegate::behaviour
