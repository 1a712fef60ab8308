// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "net/channel.hpp"
#include "net/http1_body.hpp"
#include "net/http1_parser.hpp"
#include "net/http_exchange.hpp"
#include "net/listener.hpp"
#include "net/reactor.hpp"

namespace tidegate::net {

/// The responses of HTTP listeners to clients that are shed or do not speak TLS.
inline constexpr Listener::Rejections kHttpRejections{
    .shed =
        "HTTP/1.1 503 Service Unavailable\r\n"
        "Connection: close\r\n"
        "Retry-After: 1\r\n"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Content-Type: application/problem+json\r\n"
        "\r\n"
        R"({"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",)"
        R"("title":"Service Unavailable","status":503,)"
        R"("detail":"too many connections: try again soon"})"
        "\n",
    .needs_tls =
        "HTTP/1.1 400 Bad Request\r\n"
        "Connection: close\r\n"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Content-Type: application/problem+json\r\n"
        "\r\n"
        R"({"type":"about:blank","title":"Bad Request","status":400,)"
        R"("detail":"this port requires TLS: use https://"})"
        "\n"};

class HttpListener;

/// One HTTP/1.1 connection of a server: reads requests, hands them to the listener's handler one
/// after the other, and sends the responses, those of pipelined requests in one write.
///
/// The connection is not deleted while a request is in progress. The buffers of requests that are
/// larger than a block of the pool are taken from the BufferBudget as the bytes arrive.
class HttpConnection final : public ServerConnection {
 public:
  HttpConnection(HttpListener& listener, Accepted accepted);
  ~HttpConnection() override;

  void Drain() override {
    draining_ = true;
    if (stage() == Stage::kIdle && !lingering()) Arm(Kind::kLinger);
  }
  [[nodiscard]] Stage stage() const noexcept override {
    if (lingering()) return Stage::kIdle;
    if (state_ != State::kReading || exchange_ != nullptr || sending()) return Stage::kRequest;
    return channel_.input().empty() ? Stage::kIdle : Stage::kHead;
  }

 private:
  friend class HttpExchange;

  enum class State : std::uint8_t {
    kReading,   ///< Waits for a request, or for the rest of it.
    kHandling,  ///< The handler has the request.
    kClosing,   ///< The last response is being sent, or the connection is closed.
  };

  void OnReady(std::uint32_t events) override;
  void OnDeadline(Kind kind) override;
  [[nodiscard]] bool OnClosed() override;

  /// Reads, answers and sends, as long as there is something to do without waiting.
  void Advance();
  /// Reads from the socket once. Returns false if nothing more can be read now.
  [[nodiscard]] bool Read();
  void Process();
  [[nodiscard]] bool Step();
  [[nodiscard]] bool HasBody();
  [[nodiscard]] bool HasChunkedBody();
  /// Called while the body is incomplete. Calls HttpHandler::OnHead once per request.
  void AwaitBody();
  [[nodiscard]] HttpLimits BodyLimits() const noexcept;
  /// Makes room for more input, or refuses the request for lack of memory.
  void MakeRoom();
  void ParseAgain() noexcept;
  /// Sends as much as the socket accepts. Closes the connection if it is broken, or if the budget
  /// has no room for the unsent rest.
  void Flush();
  /// Takes room for the unsent bytes from the budget. Returns false if the budget has no room.
  [[nodiscard]] bool HoldPending() noexcept;
  void Refuse(const HttpRefusal& refusal);
  void FinishExchange();
  /// Arms the deadline of the event that the connection waits for next, or ends the connection.
  void ArmNext();
  void GiveExchange() noexcept;

  /// Returns true if the socket accepts no more for now.
  [[nodiscard]] bool sending() const noexcept { return pending_held_ != 0; }

  HttpListener& listener_;
  State state_ = State::kReading;
  bool advancing_ = false;
  int turn_ = 0;  ///< Requests handled since the reactor called OnReady.
  /// OnHead has been called for the request; its body may have up to body_limit_ bytes.
  bool head_checked_ = false;
  std::size_t body_limit_ = 0;
  bool last_ = false;    ///< The connection ends after the response in progress.
  bool linger_ = false;  ///< Further input is read and dropped before the close.

  /// Set while the body is awaited and while the request is handled.
  std::unique_ptr<HttpExchange> exchange_;
  HeadParser parser_;
  ChunkedDecoder chunks_;
  std::size_t head_bytes_ = 0;
  std::size_t request_bytes_ = 0;  ///< The size of the head and the body.
  std::size_t pending_held_ = 0;   ///< Unsent bytes, taken from the budget.
};

/// Accepts HTTP connections. A handler answers their requests, each when it is complete.
class HttpListener final : public Listener {
 public:
  HttpListener(Reactor& reactor, Descriptor socket, HttpHandler& handler, const Options& options)
      : Listener(reactor, std::move(socket), options, kHttpRejections),
        handler_(handler),
        exchanges_(reactor.timers()),
        buffers_(options.budget, kBlock) {}
  /// Deletes the connections first, because they give their exchanges back to the pool.
  ~HttpListener() override { DeleteConnections(); }

  [[nodiscard]] HttpHandler& handler() noexcept { return handler_; }
  [[nodiscard]] const AnswerCounts* answers() const noexcept override { return &answers_; }
  [[nodiscard]] AnswerCounts& answers() noexcept { return answers_; }
  [[nodiscard]] HttpExchangePool& exchanges() noexcept { return exchanges_; }
  [[nodiscard]] BufferPool& buffers() noexcept { return buffers_; }

 private:
  [[nodiscard]] Connection* NewConnection(Accepted accepted) override {
    return new HttpConnection(*this, std::move(accepted));
  }

  /// Most requests fit into this size. It is small, because every request that waits for the store
  /// holds a block.
  static constexpr std::size_t kBlock = 2048;

  HttpHandler& handler_;
  AnswerCounts answers_;
  HttpExchangePool exchanges_;
  BufferPool buffers_;
};

}  // namespace tidegate::net
