// SPDX-License-Identifier: Apache-2.0
#include "gateway/behaviour/log_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "gateway/behaviour/wire.hpp"

namespace tidegate::behaviour {

LogFile::LogFile() {
  std::string name = (std::filesystem::temp_directory_path() / "tidegate-XXXXXX").string();
  EXPECT_NE(::mkdtemp(name.data()), nullptr) << name;
  folder_ = name;
}

LogFile::~LogFile() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string LogFile::text() const {
  std::ifstream file(path());
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

std::vector<boost::json::object> LogFile::Lines(std::size_t count) const {
  const auto ends = [this] {
    const std::string all = text();
    return static_cast<std::size_t>(std::ranges::count(all, '\n'));
  };
  EXPECT_TRUE(Soon([&] { return ends() >= count; }));
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
