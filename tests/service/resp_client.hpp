// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "net/endpoint.hpp"

namespace tidegate::service {

/// The bytes of a command as clients send it.
[[nodiscard]] std::string RespCommand(std::initializer_list<std::string_view> words);

/// A blocking connection that speaks the Redis protocol. Replies are told as one line:
///
///     PONG  "text"  42  null  true  [0,1,"store"]  {"a":1}  ~["a"]  -ERR what is wrong
///
/// `(end)` where the connection ended instead. Nothing waits longer than kPatience.
class RespClient {
 public:
  explicit RespClient(const net::Endpoint& to, int receive_buffer = 0);
  ~RespClient();
  RespClient(const RespClient&) = delete;
  RespClient& operator=(const RespClient&) = delete;

  bool Send(std::string_view bytes);
  std::string Read();
  std::string Ask(std::initializer_list<std::string_view> words) {
    Send(RespCommand(words));
    return Read();
  }
  void EndSending();
  /// All that still comes, until the end.
  std::string ReadRest();
  /// So many bytes in one go have come: how many writes an answer took.
  [[nodiscard]] int reads() const noexcept { return reads_; }

 private:
  bool Receive();
  /// Up to CRLF; false: the end.
  bool Line(std::string& line);
  bool Value(std::string& out);
  bool Elements(std::string& out, long count, std::string_view between);

  int fd_ = -1;
  int reads_ = 0;
  std::string received_;
};

}  // namespace tidegate::service
