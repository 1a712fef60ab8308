// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "net/endpoint.hpp"
#include "support/stream.hpp"

namespace tidegate::test {

/// Returns the bytes of a command, as Redis clients send it.
[[nodiscard]] std::string RespCommand(std::initializer_list<std::string_view> words);

/// A blocking client of the Redis protocol. Read() returns each reply as one line:
///
///     PONG  "text"  42  null  true  [0,1,"store"]  {"a":1}  ~["a"]  -ERR what is wrong
///
/// It returns `(end)` if the connection has ended. No call waits longer than kPatience.
class RespClient {
 public:
  explicit RespClient(const net::Endpoint& to, int receive_buffer = 0)
      : RespClient(std::make_unique<Stream>(to, receive_buffer)) {}
  explicit RespClient(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

  bool Send(std::string_view bytes) { return stream_->Send(bytes); }
  std::string Read();
  std::string Ask(std::initializer_list<std::string_view> words) {
    Send(RespCommand(words));
    return Read();
  }
  void EndSending() { stream_->EndSending(); }
  /// Returns all bytes until the end of the connection.
  std::string ReadRest() { return stream_->ReadRest(); }
  /// Returns how many reads returned bytes, which shows how many writes a reply took.
  [[nodiscard]] int reads() const noexcept { return stream_->reads(); }

 private:
  /// Reads up to CRLF; returns false at the end of the connection.
  bool Line(std::string& line);
  bool Value(std::string& out);
  bool Elements(std::string& out, long count, std::string_view between);

  std::unique_ptr<Stream> stream_;
};

}  // namespace tidegate::test
