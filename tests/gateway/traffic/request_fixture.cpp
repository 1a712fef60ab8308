// SPDX-License-Identifier: Apache-2.0
#include "gateway/traffic/request_fixture.hpp"

#include <fstream>
#include <stdexcept>
#include <string_view>

namespace tidegate::gateway_test {
namespace {

char HexByte(std::string_view digits) {
  return static_cast<char>(std::stoi(std::string(digits), nullptr, 16));
}

std::string Unescaped(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    if (text.front() != '\\') {
      bytes += text.front();
      text.remove_prefix(1);
      continue;
    }
    const char kind = text.size() > 1 ? text[1] : '\0';
    std::size_t used = 2;
    if (kind == 'r' || kind == 'n' || kind == 't' || kind == '\\') {
      bytes += kind == 'r' ? '\r' : kind == 'n' ? '\n' : kind == 't' ? '\t' : '\\';
    } else if (kind == 'x' && text.size() >= 4) {
      bytes += HexByte(text.substr(2, 2));
      used = 4;
    } else if (kind == '{' && text.find('}', 4) != std::string_view::npos) {
      const std::size_t end = text.find('}', 4);
      const std::size_t star = text.rfind('*', end);
      const std::string one = Unescaped(text.substr(2, star - 2));
      bytes.append(std::stoul(std::string(text.substr(star + 1, end - star - 1))), one.at(0));
      used = end + 1;
    } else {
      throw std::runtime_error("malformed escape: " + std::string(text.substr(0, 20)));
    }
    text.remove_prefix(used);
  }
  return bytes;
}

}  // namespace

std::vector<CapturedRequest> ReadRequests(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::vector<CapturedRequest> requests;
  for (std::string line; std::getline(in, line);) {
    const auto after = [&line](std::string_view prefix) { return line.substr(prefix.size()); };
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("== ")) {
      requests.emplace_back().title = after("== ");
    } else if (requests.empty()) {
      throw std::runtime_error("a line before the first record: " + line);
    } else if (line.starts_with("ambiguous: ")) {
      requests.back().ambiguous = after("ambiguous: ");
    } else if (line.starts_with("needs: ")) {
      requests.back().needs = after("needs: ");
    } else if (line.starts_with("until: ")) {
      requests.back().until = after("until: ");
    } else if (line.starts_with("> ")) {
      requests.back().bytes += Unescaped(after("> "));
    } else {
      throw std::runtime_error("malformed line: " + line);
    }
  }
  return requests;
}

}  // namespace tidegate::gateway_test
