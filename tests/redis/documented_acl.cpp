// SPDX-License-Identifier: Apache-2.0
#include "redis/documented_acl.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tidegate::redis_test {
namespace {

std::vector<std::string> LineWith(bool of_sentinels, const std::string& password) {
  std::ifstream page(TIDEGATE_DOCS "/redis.md");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("ACL SETUSER ")) continue;
    if ((line.find("+sentinel") != std::string::npos) != of_sentinels) continue;
    std::vector<std::string> words;
    std::istringstream in(line);
    for (std::string word; in >> word;)
      words.push_back(word == ">PASSWORD" ? ">" + password : word);
    return words;
  }
  return {};
}

}  // namespace

std::vector<std::string> DocumentedAcl(const std::string& password) {
  std::vector<std::string> words = LineWith(false, password);
  if (words.empty()) throw std::runtime_error("docs/redis.md has no line ACL SETUSER");
  return words;
}

std::vector<std::string> DocumentedSentinelAcl(const std::string& password) {
  return LineWith(true, password);
}

}  // namespace tidegate::redis_test
