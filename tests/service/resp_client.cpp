// SPDX-License-Identifier: Apache-2.0
#include "service/resp_client.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>

#include "service/fixture.hpp"

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

RespClient::RespClient(const net::Endpoint& to, int receive_buffer)
    : fd_(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer > 0) {
    (void)setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  (void)setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  (void)setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  EXPECT_EQ(::connect(fd_, to.address(), to.size()), 0);
}

RespClient::~RespClient() { ::close(fd_); }

bool RespClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void RespClient::EndSending() { ::shutdown(fd_, SHUT_WR); }

bool RespClient::Receive() {
  std::array<char, 65536> bytes;
  const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
  if (got <= 0) return false;
  ++reads_;
  received_.append(bytes.data(), static_cast<std::size_t>(got));
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
