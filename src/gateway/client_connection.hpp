// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "gateway/client_stream.hpp"
#include "net/body_reader.hpp"
#include "net/channel.hpp"
#include "net/http1_parser.hpp"
#include "net/listener.hpp"

namespace tidegate {

class GatewayListener;
class Passage;

/// One HTTP/1.1 connection of a client of the gateway: reads heads, hands each request to a
/// passage, one after the other, and frames what passes in both directions. It keeps nothing of a
/// body but what one buffer holds.
///
/// It owns itself: it goes when it is closed and has no passage any more.
class ClientConnection final : public net::Connection,
                               public net::Deadlines::Node,
                               public ClientStream {
 public:
  ClientConnection(GatewayListener& listener, net::Accepted accepted);
  ~ClientConnection() override;

  void Start() override;
  void Drain() override;
  void Close() override;

  // --- ClientStream ---
  [[nodiscard]] const net::Peer& peer() const noexcept override { return peer_; }
  [[nodiscard]] std::optional<std::string_view> WholeBody() const override;
  [[nodiscard]] Body ReadBody() override;
  [[nodiscard]] std::string_view body() const noexcept override { return reader_.data(); }
  void TakeBody() override;
  [[nodiscard]] std::span<const net::HttpField> trailers() const noexcept override {
    return reader_.trailers();
  }
  [[nodiscard]] const net::HttpRefusal& refusal() const noexcept override {
    return reader_.refusal();
  }
  [[nodiscard]] bool awaits_continue() const noexcept override { return expects_continue_; }
  [[nodiscard]] net::OutBuffer& BeginHead(int status, std::string_view reason) override;
  void EndHead(AnswerBody body, std::uint64_t length) override;
  [[nodiscard]] net::OutBuffer* BeginInterim(int status, std::string_view reason) override;
  void EndInterim() override;
  [[nodiscard]] bool Retract() noexcept override;
  void CloseAfter() noexcept override { last_ = true; }
  void Switch() override;
  void EndSending() override { channel_.ShutdownWrite(); }
  void SendBody(std::string_view data) override;
  void SendEnd(std::span<const net::HttpField> trailers, const HeaderEdits& edits) override;
  [[nodiscard]] bool Flush() override;
  [[nodiscard]] bool blocked() const noexcept override { return channel_.blocked(); }
  [[nodiscard]] std::uint64_t received() const noexcept override;
  [[nodiscard]] std::uint64_t sent() const noexcept override {
    return channel_.sent() - sent_before_;
  }
  void Finish(Ending ending) override;

 private:
  enum class State : std::uint8_t {
    kHead,       ///< Waits for a request, or for the rest of its head.
    kPassing,    ///< A passage has it.
    kSkipping,   ///< The answer was given before the body had come: its rest is read and dropped.
    kClosing,    ///< The last bytes are on their way.
    kLingering,  ///< What still comes is dropped: to close with bytes unread would reset the
                 ///< connection, and the answer might be lost with it.
    kClosed,
  };

  void OnReady(std::uint32_t events) override;
  void OnDeadline(net::Deadlines::Kind kind) override;

  void Advance();
  /// One request's head, if it is there. False: wait.
  [[nodiscard]] bool ReadHead();
  /// Whether an unknown expectation is answered with 417 (`gateway.unknown_expect`).
  [[nodiscard]] bool RejectsUnknownExpect();
  void Begin();
  [[nodiscard]] bool Skip();
  /// What is left of the request's bytes when its answer has been given.
  void LeaveBody();
  void Linger();
  void LookForEnd();
  /// Whether more of the request's body is to come than is worth reading for nothing.
  [[nodiscard]] bool MuchToCome() const noexcept;
  void Refuse(const net::HttpRefusal& refusal);
  void Settle();
  void Arm(net::Deadlines::Kind kind) noexcept;

  GatewayListener& listener_;
  const net::Peer peer_;
  net::Channel channel_;
  Passage* passage_ = nullptr;
  State state_ = State::kHead;
  net::Deadlines::Kind armed_ = net::Deadlines::Kind::kHeader;
  bool silent_ = true;  ///< The client has not sent a byte yet.
  bool draining_ = false;
  bool active_ = false;     ///< A request came since the deadline was armed.
  bool advancing_ = false;  ///< Within Advance: Finish returns to it instead of calling it.
  int turn_ = 0;            ///< Requests since the reactor called.

  net::HeadParser parser_;
  net::BodyReader reader_;
  std::size_t head_bytes_ = 0;
  std::uint64_t length_ = 0;  ///< Of a body that has one.
  bool head_there_ = false;   ///< The head's bytes still stand before the body's.
  bool body_done_ = false;
  bool chunked_ = false;           ///< Of the request.
  bool expects_continue_ = false;  ///< And nobody has said yet that it shall come.
  bool head_method_ = false;
  int minor_ = 1;
  bool last_ = false;             ///< The connection ends with the answer under way.
  bool stream_chunks_ = false;    ///< The answer's body is sent in chunks.
  bool close_delimited_ = false;  ///< The answer's body ends where the connection does.
  bool switched_ = false;
  std::size_t out_mark_ = 0;   ///< Where the answer begins in what is to be sent...
  std::size_t sent_mark_ = 0;  ///< ... when so much had been sent.
  std::size_t received_before_ = 0;
  std::size_t sent_before_ = 0;
  std::size_t progress_mark_ = 0;
};

}  // namespace tidegate
