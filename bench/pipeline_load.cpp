// SPDX-License-Identifier: Apache-2.0
#include "pipeline_load.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace tidegate::bench {

PipelineLoad::PipelineLoad(int port, int connections, std::function<void(std::string&)> append,
                           int pipeline)
    : pipeline_(pipeline), append_(std::move(append)), in_(64u << 10) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < connections; ++i) {
    net::Descriptor fd(::socket(AF_INET, SOCK_STREAM, 0));
    const int on = 1;
    (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect");
    }
    connections_.push_back(std::move(fd));
  }
}

void PipelineLoad::Send(const net::Descriptor& connection) {
  out_.clear();
  for (int i = 0; i < pipeline_; ++i) append_(out_);
  if (::send(connection.get(), out_.data(), out_.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(out_.size())) {
    throw std::runtime_error("cannot send");
  }
}

void PipelineLoad::Receive(const net::Descriptor& connection) {
  for (std::ptrdiff_t answers = 0; answers < pipeline_;) {
    const ssize_t got = recv(connection.get(), in_.data(), in_.size(), 0);
    if (got <= 0) throw std::runtime_error("the connection broke");
    const std::string_view text(in_.data(), static_cast<std::size_t>(got));
    if (text.find("-ERR") != text.npos) throw std::runtime_error(std::string(text.substr(0, 80)));
    answers += std::count(text.begin(), text.end(), '*');
    // The last bytes of this reply have not arrived.
    if (answers == pipeline_ && !text.ends_with('\n')) --answers;
  }
}

std::uint64_t PipelineLoad::Run(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t commands = 0;
  for (const auto& connection : connections_) Send(connection);
  while (Clock::now() < end) {
    for (const auto& connection : connections_) {
      Receive(connection);
      Send(connection);
      commands += static_cast<std::uint64_t>(pipeline_);
    }
  }
  for (const auto& connection : connections_) Receive(connection);
  return commands + static_cast<std::uint64_t>(pipeline_) * connections_.size();
}

}  // namespace tidegate::bench
