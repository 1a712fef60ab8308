// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "gateway/client_stream.hpp"
#include "net/http1_body.hpp"
#include "net/http1_parser.hpp"
#include "net/listener.hpp"

namespace tidegate {

class GatewayListener;
class ProxiedExchange;

/// One HTTP/1.1 connection of a client of the gateway: reads heads, hands one request after the
/// other to an exchange, removes the framing of request bodies and adds that of responses. Holds at
/// most one buffer of a body, and no exchange once it is closed.
class ClientConnection final : public net::ServerConnection, public ClientStream {
 public:
  ClientConnection(GatewayListener& listener, net::Accepted accepted);

  void Drain() override {
    draining_ = true;
    // A connection whose last response is being sent ends after that response.
    if (state_ == State::kHead && !lingering() && channel_.input().empty() && !channel_.blocked()) {
      Arm(Kind::kLinger);
    }
  }

  // ClientStream
  [[nodiscard]] const net::Peer& peer() const noexcept override { return peer_; }
  [[nodiscard]] std::optional<std::string_view> WholeBody() const override;
  [[nodiscard]] Body ReadBody() override;
  [[nodiscard]] std::string_view body() const noexcept override { return reader_.data(); }
  void TakeBody() override {
    // The trailers after the last chunk have not been forwarded yet.
    if (!request_.body_done || !request_.chunked) channel_.Drop(reader_.eaten());
  }
  [[nodiscard]] std::span<const net::HttpField> trailers() const noexcept override {
    return reader_.trailers();
  }
  [[nodiscard]] bool awaits_continue() const noexcept override { return request_.expects_continue; }
  [[nodiscard]] const net::HttpRefusal& refusal() const noexcept override {
    return reader_.refusal();
  }
  [[nodiscard]] net::OutBuffer& BeginHead(int status, std::string_view reason) override;
  void EndHead(AnswerBody body, std::uint64_t length) override;
  [[nodiscard]] net::OutBuffer* BeginInterim(int status, std::string_view reason) override;
  void EndInterim() override { channel_.out() << "\r\n"; }
  [[nodiscard]] bool Retract() noexcept override;
  void CloseAfter() noexcept override { response_.last = true; }
  void Switch() override;
  void EndSending() override { channel_.ShutdownWrite(); }
  void SendBody(std::string_view data) override;
  void SendEnd(std::span<const net::HttpField> trailers, const HeaderEdits& edits) override;
  [[nodiscard]] bool Flush() override { return channel_.Flush(); }
  [[nodiscard]] bool blocked() const noexcept override { return channel_.blocked(); }
  [[nodiscard]] std::uint64_t received() const noexcept override;
  [[nodiscard]] std::uint64_t sent() const noexcept override {
    return channel_.sent() - sent_before_;
  }
  void Finish(Ending ending) override;

 private:
  enum class State : std::uint8_t {
    kHead,      ///< Waits for a request, or for the rest of its head.
    kPassing,   ///< An exchange processes the request.
    kSkipping,  ///< The response was sent before the whole body arrived; the rest is dropped.
    kClosing,   ///< The last bytes are being sent, or the connection is closed.
  };

  /// The framing of the request in progress.
  struct Request {
    std::size_t head_bytes = 0;
    std::uint64_t length = 0;  ///< The Content-Length.
    bool head_there = false;   ///< The bytes of the head are still in the buffer, before the body.
    bool body_done = false;
    bool chunked = false;           ///< The body is chunked.
    bool expects_continue = false;  ///< The client waits for 100 before it sends its body.
    bool is_head = false;           ///< The method is HEAD.
    int minor = 1;                  ///< The version is HTTP/1.<minor>.
  };
  /// The framing of the response to that request.
  struct Response {
    enum class Body : std::uint8_t {
      kLength,      ///< The body is empty, or as long as its Content-Length.
      kChunks,      ///< Sent in chunks.
      kUntilClose,  ///< Ends with the connection.
      kTunnel,      ///< Raw bytes after 101, in both directions.
    };
    Body body = Body::kLength;
    bool last = false;          ///< The connection ends after this response.
    std::size_t out_mark = 0;   ///< The size of the output buffer before the response.
    std::size_t sent_mark = 0;  ///< Bytes that had been sent before the response.
  };

  /// The most bytes of a body that are read and dropped after its response. For more bytes a new
  /// connection is cheaper.
  static constexpr std::uint64_t kMaxSkipped = 64u << 10;

  void OnReady(std::uint32_t events) override;
  void OnDeadline(Kind kind) override;
  [[nodiscard]] bool OnClosed() override;

  void Advance();
  /// Reads the head of a request and begins the request. Returns false to wait for more.
  [[nodiscard]] bool ReadHead();
  void Begin();
  [[nodiscard]] bool Skip();
  /// Returns how many bytes at the front of the input belong to the request, if it is complete.
  [[nodiscard]] std::size_t OwnBytes() const noexcept {
    if (request_.head_there) return request_.head_bytes + WholeBody().value_or("").size();
    return request_.chunked ? reader_.eaten() : 0;
  }
  /// Drops the rest of the request after its response. If a part of it has not arrived, selects
  /// whether that part will be skipped (kSkipping) or the connection will end (Response::last).
  void LeaveBody();
  void LookForEnd();
  /// Returns true if closing costs less than reading the rest of the body, or if the rest may not
  /// come.
  [[nodiscard]] bool MuchToCome() const noexcept;
  /// Rejects an invalid request. Returns false: nothing more is read.
  bool Refuse(const net::HttpRefusal& refusal);
  /// Arms the deadline of the event that the connection waits for next, or ends the connection.
  void ArmNext();

  GatewayListener& listener_;
  ProxiedExchange* exchange_ = nullptr;
  State state_ = State::kHead;
  bool advancing_ = false;  ///< Advance is running: Finish returns to it and does not call it.
  int turn_ = 0;            ///< Requests since the reactor called OnReady.

  net::HeadParser parser_;
  net::BodyReader reader_;
  Request request_;
  Response response_;
  std::size_t received_before_ = 0;  ///< Bytes that had been received before the request.
  std::size_t sent_before_ = 0;
};

}  // namespace tidegate
