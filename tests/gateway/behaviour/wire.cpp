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

#include "identity/request_view.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {

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
