// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/deadlines.hpp"
#include "net/listener.hpp"

namespace tidegate::net {

/// The beginning of a connection, before its door speaks: the header of the PROXY protocol, then
/// the TLS handshake, where the listener has them. Within the deadline of a request's head, all of
/// it; then the door's own connection takes its place.
class Welcome final : public Connection, public Deadlines::Node {
 public:
  Welcome(Listener& listener, Accepted accepted);

  void Start() override;
  void Drain() override;
  void Close() override;

 private:
  enum class State : bool { kOpen, kClosed };
  enum class Step : unsigned char { kDone, kWait, kOver };

  void OnReady(std::uint32_t events) override;
  void OnDeadline(Deadlines::Kind kind) override;
  [[nodiscard]] Step ReadHeader();
  [[nodiscard]] Step ShakeHands();
  /// Nobody who should be here.
  [[nodiscard]] Step Refuse();

  Listener& listener_;
  Accepted accepted_;
  State state_ = State::kOpen;
  bool header_;         ///< It is still to come.
  bool ended_ = false;  ///< The other side sends no more than what is there.
};

}  // namespace tidegate::net
