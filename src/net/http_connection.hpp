// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/deadlines.hpp"
#include "net/descriptor.hpp"
#include "net/http1_parser.hpp"
#include "net/http_exchange.hpp"
#include "net/listener.hpp"
#include "net/reactor.hpp"

namespace tidegate::net {

class HttpListener;

/// One HTTP/1.1 connection of a server: reads requests, hands them to the listener's handler one
/// after the other, and sends the answers, those of pipelined requests in one write.
///
/// Owns itself: it is deleted when it is closed and no request is in progress. Small requests fit
/// its own buffer. For a larger request it takes a buffer out of the listener's BufferBudget, and
/// only as the bytes arrive; it gives the buffer back after the request.
class HttpConnection final : public Connection, public Deadlines::Node {
 public:
  HttpConnection(HttpListener& listener, Accepted accepted);
  ~HttpConnection() override;

  void Start() override;
  void Drain() override;
  void Close() override;
  [[nodiscard]] Stage stage() const noexcept override {
    if (state_ == State::kLingering) return Stage::kIdle;
    if (state_ != State::kReading || exchange_ != nullptr || sending()) return Stage::kRequest;
    return begin_ == end_ ? Stage::kIdle : Stage::kHead;
  }

  [[nodiscard]] const Peer& peer() const noexcept { return peer_; }
  /// Ends the connection after the answer in progress.
  void CloseAfterAnswer() noexcept { last_ = linger_ = true; }
  OutBuffer& BeginAnswer(int status);
  void EndAnswer(std::string_view content_type, std::string_view body);

 private:
  enum class State : std::uint8_t {
    kReading,    ///< For a request, or the rest of it.
    kHandling,   ///< The handler has it.
    kClosing,    ///< The last answer is on its way.
    kLingering,  ///< Answered: what still comes is dropped. To close with bytes unread would reset
                 ///< the connection, and the answer might be lost with it.
    kClosed,
  };

  void OnReady(std::uint32_t events) override;
  void OnDeadline(Deadlines::Kind kind) override;

  /// Reads, answers and sends, as long as there is something to do without waiting.
  void Advance();
  /// The reactor's buffer, for this connection's bytes only.
  [[nodiscard]] OutBuffer& Out();
  /// False: there is nothing more to read now.
  [[nodiscard]] bool Read();
  void Process();
  [[nodiscard]] bool Step();
  [[nodiscard]] bool HasBody();
  [[nodiscard]] bool HasChunkedBody();
  /// Called while the body is incomplete. Asks the handler, once per request, whether it takes the
  /// body; if not, the handler has answered.
  void AwaitBody();
  [[nodiscard]] HttpLimits BodyLimits() const noexcept;
  /// Makes room for `bytes` more. Returns false if the request has been refused for lack of memory.
  [[nodiscard]] bool MakeRoom(std::size_t bytes);
  void DropLarge() noexcept;
  void DropPending() noexcept;
  void ShrinkIfIdle() noexcept;
  void Refuse(const HttpRefusal& refusal);
  void FinishExchange();
  void Flush();
  void SendPending();
  void Settle();
  void Arm(Deadlines::Kind kind) noexcept;
  void GiveExchange() noexcept;

  [[nodiscard]] std::string_view input() const noexcept {
    return {buffer_ + begin_, end_ - begin_};
  }
  [[nodiscard]] bool sending() const noexcept { return sent_ < pending_.size(); }

  static constexpr std::size_t kInlineBytes = 2048;

  /// As the system's recv and send, through TLS where there is some.
  [[nodiscard]] ssize_t Receive(char* data, std::size_t size);
  [[nodiscard]] ssize_t Send(const char* data, std::size_t size);

  HttpListener& listener_;
  Descriptor socket_;
  const Peer peer_;
  std::unique_ptr<TlsSession> tls_;

  State state_ = State::kReading;
  Deadlines::Kind armed_ = Deadlines::Kind::kHeader;
  bool silent_ = true;     ///< The client has not sent a byte yet.
  bool readable_ = false;  ///< The system may have more for us.
  bool hung_up_ = false;   ///< The other side will send no more than what is there.
  bool advancing_ = false;
  int turn_ = 0;  ///< Requests handled since the reactor called.
  bool draining_ = false;
  bool active_ = false;  ///< A request came since the deadline was armed.
  /// OnHead has been called for the request; its body may have up to body_limit_ bytes.
  bool head_checked_ = false;
  std::size_t body_limit_ = 0;
  bool last_ = false;    ///< The connection ends after the response in progress.
  bool linger_ = false;  ///< Read and drop further input before the close.

  /// Set while the body is awaited and while the request is handled.
  std::unique_ptr<HttpExchange> exchange_;
  HeadParser parser_;
  ChunkedDecoder chunks_;
  std::size_t head_bytes_ = 0;
  std::size_t request_bytes_ = 0;  ///< Head and body.
  std::size_t progress_ = 0;       ///< Bytes moved since the deadline was armed.

  char* buffer_ = nullptr;
  std::size_t capacity_ = kInlineBytes;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::unique_ptr<char[]> large_;
  std::string pending_;           ///< Response bytes; those from sent_ on are not sent yet.
  std::size_t pending_held_ = 0;  ///< Bytes of pending_ that are taken from the budget.
  std::size_t sent_ = 0;
  std::array<char, kInlineBytes> own_;
};

}  // namespace tidegate::net
