// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "net/deadlines.hpp"
#include "net/listener.hpp"

namespace tidegate::net {

/// Reads the PROXY protocol header and performs the TLS handshake, if the listener requires them,
/// and then hands the socket to the frontend's connection. Both must finish within
/// `limits.header_timeout`.
class ConnectionHandshake final : public Connection, public Deadlines::Node {
 public:
  ConnectionHandshake(Listener& listener, Accepted accepted);

  void Start() override;
  void Drain() override;
  void Close() override;
  [[nodiscard]] Stage stage() const noexcept override {
    return state_ == State::kClosed ? Stage::kRequest : Stage::kIdle;
  }

 private:
  enum class State : bool { kOpen, kClosed };
  enum class Step : unsigned char { kDone, kWait, kOver };

  void OnReady(std::uint32_t events) override;
  void OnDeadline(Deadlines::Kind kind) override;
  [[nodiscard]] Step ReadProxyHeader();
  [[nodiscard]] Step PerformTls();
  /// Counts the connection as refused and closes it.
  [[nodiscard]] Step Refuse();
  /// Reports why the peer is rejected, and refuses the connection.
  [[nodiscard]] Step Reject(Rejection rejection, std::string_view problem = {});
  /// Reports the rejection if the handshake failed because of the client's certificate, and refuses
  /// the connection.
  [[nodiscard]] Step RefuseTls();
  /// Answers a client that does not speak TLS, in the listener's protocol.
  void SendNeedsTls();

  Listener& listener_;
  Accepted accepted_;
  State state_ = State::kOpen;
  bool needs_header_;   ///< The PROXY protocol header has not been read yet.
  bool ended_ = false;  ///< The peer sends no more bytes than the socket already has.
};

}  // namespace tidegate::net
