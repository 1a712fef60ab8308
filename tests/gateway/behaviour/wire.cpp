// SPDX-License-Identifier: Apache-2.0
#include "gateway/behaviour/wire.hpp"

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <thread>
#include <utility>

#include "rules/request_view.hpp"

namespace tidegate::behaviour {

// --- Messages -----------------------------------------------------------------

std::string FieldOf(const Fields& fields, std::string_view name) {
  for (const auto& field : fields) {
    if (EqualsIgnoreCase(field.first, name)) return field.second;
  }
  return {};
}

int CountOf(const Fields& fields, std::string_view name) {
  int count = 0;
  for (const auto& field : fields) count += EqualsIgnoreCase(field.first, name) ? 1 : 0;
  return count;
}

std::string ListOf(const Fields& fields, std::string_view name) {
  std::string list;
  for (const auto& field : fields) {
    if (!EqualsIgnoreCase(field.first, name)) continue;
    if (!list.empty()) list += ", ";
    list += field.second;
  }
  return list;
}

std::string Request::target() const {
  const std::size_t begin = start.find(' ') + 1;
  return start.substr(begin, start.rfind(' ') - begin);
}

boost::json::object Answer::Json() const {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(body, error);
  EXPECT_TRUE(!error && value.is_object()) << status << " " << body;
  return value.is_object() ? value.get_object() : boost::json::object{};
}

namespace {

Fields ParseFields(std::string_view lines) {
  Fields fields;
  while (!lines.empty()) {
    const std::size_t end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 2);
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    EXPECT_NE(colon, std::string_view::npos) << "not a field line: " << line;
    if (colon == std::string_view::npos) continue;
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    fields.emplace_back(line.substr(0, colon), value);
  }
  return fields;
}

}  // namespace

// --- Sockets ------------------------------------------------------------------

Socket::Socket(int fd) noexcept : fd_(fd) {
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Socket::~Socket() { Close(); }

bool Socket::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Socket::Receive() {
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  received_.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

void Socket::EndSending() { ::shutdown(fd_, SHUT_WR); }

void Socket::Reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  Close();
}

void Socket::Close() {
  const std::lock_guard lock(closing_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Socket::Wake(How how) {
  const std::lock_guard lock(closing_);
  if (fd_ < 0) return;
  if (how == How::kReset) {
    const linger now{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  // To end the sending too would tell the other side of an orderly end.
  ::shutdown(fd_, how == How::kReset ? SHUT_RD : SHUT_RDWR);
}

std::string Socket::ReadUntil(std::string_view end) {
  std::size_t at = 0;
  while ((at = received_.find(end)) == std::string::npos) {
    if (!Receive()) return std::exchange(received_, {});
  }
  std::string text = received_.substr(0, at + end.size());
  received_.erase(0, text.size());
  return text;
}

std::string Socket::ReadExactly(std::size_t count) {
  while (received_.size() < count && Receive()) {
  }
  std::string text = received_.substr(0, count);
  received_.erase(0, text.size());
  return text;
}

std::string Socket::ReadRest() {
  while (Receive()) {
  }
  return std::exchange(received_, {});
}

bool Socket::Readable(std::chrono::milliseconds at_most) {
  if (!received_.empty()) return true;
  pollfd poll{.fd = fd_, .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, static_cast<int>(at_most.count())) == 1;
}

bool Socket::ReadHead(Message& message) {
  message.head = ReadUntil("\r\n\r\n");
  if (!message.head.ends_with("\r\n\r\n")) return false;
  const std::size_t line = message.head.find("\r\n");
  message.start = message.head.substr(0, line);
  message.fields = ParseFields(std::string_view(message.head).substr(line + 2));
  return true;
}

void Socket::ReadLength(Message& message, std::size_t length) {
  message.body = ReadExactly(length);
  message.whole = message.body.size() == length;
}

void Socket::ReadChunks(Message& message) {
  message.whole = false;
  while (true) {
    const std::string line = ReadUntil("\r\n");
    if (!line.ends_with("\r\n")) return;
    const std::size_t size = std::stoul(line, nullptr, 16);
    if (size == 0) break;
    const std::string data = ReadExactly(size + 2);
    message.body.append(data, 0, std::min(size, data.size()));
    if (data.size() != size + 2) return;
    EXPECT_TRUE(data.ends_with("\r\n")) << "a chunk without its end";
  }
  std::string lines;
  while (true) {
    const std::string line = ReadUntil("\r\n");
    if (!line.ends_with("\r\n")) return;
    if (line == "\r\n") break;
    lines += line;
  }
  message.trailers = ParseFields(lines);
  message.whole = true;
}

// --- Threads ------------------------------------------------------------------

void Signal::Give() {
  const std::lock_guard lock(mutex_);
  given_ = true;
  changed_.notify_all();
}

bool Signal::Wait() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [this] { return given_; });
}

bool Signal::given() const {
  const std::lock_guard lock(mutex_);
  return given_;
}

bool Soon(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

std::string RandomBytes(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string Chunked(std::string_view body, std::size_t chunk, std::string_view trailers) {
  std::string text;
  while (!body.empty()) {
    const std::string_view part = body.substr(0, chunk);
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", part.size());
    text.append(size).append(part).append("\r\n");
    body.remove_prefix(part.size());
  }
  return text.append("0\r\n").append(trailers).append("\r\n");
}

}  // namespace tidegate::behaviour
