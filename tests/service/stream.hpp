// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/endpoint.hpp"

namespace tidegate::service {

/// The bytes of a blocking connection, whatever they pass through. Nothing waits longer than
/// kPatience.
class Stream {
 public:
  enum class Got : std::uint8_t {
    kBytes,
    kEnd,      ///< In good order.
    kCut,      ///< A reset; through TLS, an end without a word too.
    kNothing,  ///< In kPatience.
  };

  /// Connects. `receive_buffer`: of the socket, if not 0.
  explicit Stream(const net::Endpoint& to, int receive_buffer = 0);
  virtual ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// False: the other side takes no more.
  virtual bool Send(std::string_view bytes);
  /// Adds what comes next to `to`.
  virtual Got Receive(std::string& to);
  virtual void EndSending();

  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace tidegate::service
