// SPDX-License-Identifier: Apache-2.0
#include "service/resp_client.hpp"

#include <gtest/gtest.h>

namespace tidegate::service {

std::string RespCommand(std::initializer_list<std::string_view> words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n";
    bytes += word;
    bytes += "\r\n";
  }
  return bytes;
}

bool RespClient::Receive() {
  if (stream_->Receive(received_) != Stream::Got::kBytes) return false;
  ++reads_;
  return true;
}

std::string RespClient::ReadRest() {
  while (Receive()) {
  }
  return std::exchange(received_, {});
}

bool RespClient::Line(std::string& line) {
  std::size_t end = 0;
  while ((end = received_.find("\r\n")) == std::string::npos) {
    if (!Receive()) return false;
  }
  line = received_.substr(0, end);
  received_.erase(0, end + 2);
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
    case ',':
      out += rest;
      return true;
    case '-':
      out += line;
      return true;
    case '_':
      out += "null";
      return true;
    case '#':
      out += rest == "t" ? "true" : "false";
      return true;
    case '$':
    case '=': {
      const long size = std::stol(rest);
      if (size < 0) {
        out += "null";
        return true;
      }
      const auto bytes = static_cast<std::size_t>(size);
      while (received_.size() < bytes + 2) {
        if (!Receive()) return false;
      }
      out += "\"" + received_.substr(0, bytes) + "\"";
      EXPECT_EQ(received_.substr(bytes, 2), "\r\n");
      received_.erase(0, bytes + 2);
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
    default:
      ADD_FAILURE() << "not the Redis protocol: " << line;
      return false;
  }
}

std::string RespClient::Read() {
  std::string out;
  return Value(out) ? out : "(end)";
}

}  // namespace tidegate::service
