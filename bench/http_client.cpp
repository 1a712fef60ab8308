// SPDX-License-Identifier: Apache-2.0
#include "http_client.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "http_load.hpp"

namespace tidegate::bench {

HttpClient::HttpClient(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("port " + std::to_string(port) + " does not accept connections");
  }
  const timeval timeout{5, 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  const int on = 1;
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::string HttpClient::Ask(const std::string& request) {
  (void)send(fd_.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  std::array<char, 16384> buffer;
  while (AnswerBytes(answer) == 0) {
    const ssize_t bytes = recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (bytes <= 0) throw std::runtime_error("no response within 5 s");
    answer.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
  if (!answer.starts_with("HTTP/1.1 200"))
    throw std::runtime_error("response is not 200: " + answer);
  return answer;
}

bool HttpClient::idle() const {
  char byte = 0;
  return recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

}  // namespace tidegate::bench
