// SPDX-License-Identifier: Apache-2.0
#include "support/resp_client.hpp"

#include <gtest/gtest.h>

namespace tidegate::test {

std::string RespCommand(std::initializer_list<std::string_view> words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n";
    bytes += word;
    bytes += "\r\n";
  }
  return bytes;
}

bool RespClient::Line(std::string& line) {
  line = stream_->ReadUntil("\r\n");
  if (!line.ends_with("\r\n")) return false;
  line.resize(line.size() - 2);
  return true;
}

bool RespClient::Elements(std::string& out, long count, std::string_view between) {
  for (long i = 0; i < count; ++i) {
    if (i > 0) out += between.size() == 2 && i % 2 == 1 ? between.substr(1) : between.substr(0, 1);
    if (!Value(out)) return false;
  }
  return true;
}

bool RespClient::Value(std::string& out) {
  std::string line;
  if (!Line(line)) return false;
  if (line.empty()) return false;
  const std::string rest = line.substr(1);
  switch (line[0]) {
    case '+':
    case ':':
    case ',': out += rest; return true;
    case '-': out += line; return true;
    case '_': out += "null"; return true;
    case '#': out += rest == "t" ? "true" : "false"; return true;
    case '$':
    case '=': {
      const long size = std::stol(rest);
      if (size < 0) {
        out += "null";
        return true;
      }
      const std::string text = stream_->ReadExactly(static_cast<std::size_t>(size) + 2);
      if (text.size() != static_cast<std::size_t>(size) + 2) return false;
      EXPECT_TRUE(text.ends_with("\r\n")) << text;
      out += "\"" + text.substr(0, text.size() - 2) + "\"";
      return true;
    }
    case '*':
    case '~': {
      if (line[0] == '~') out += '~';
      out += '[';
      if (!Elements(out, std::stol(rest), ",")) return false;
      out += ']';
      return true;
    }
    case '%': {
      out += '{';
      if (!Elements(out, 2 * std::stol(rest), ",:")) return false;
      out += '}';
      return true;
    }
    default: ADD_FAILURE() << "not the Redis protocol: " << line; return false;
  }
}

std::string RespClient::Read() {
  std::string out;
  return Value(out) ? out : "(end)";
}

}  // namespace tidegate::test
