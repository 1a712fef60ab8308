// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string_view>
#include <vector>

#include "net/buffers.hpp"
#include "net/http1_parser.hpp"
#include "net/timer.hpp"
#include "net/tls.hpp"

namespace tidegate::net {

class HttpConnection;

/// The client of a connection. Its address has 16 bytes, IPv4 mapped into IPv6.
struct Peer {
  std::array<unsigned char, 16> bytes{};
  unsigned short port = 0;
  bool secure = false;    ///< The connection uses TLS.
  bool verified = false;  ///< The client presented a certificate, which was accepted.
  bool relayed = false;   ///< The peer is a proxy that did not name its client.
  /// The names in the client's certificate; nullptr unless `verified`.
  std::shared_ptr<const PeerCertificate> certificate = {};
};

/// One request with its response, from the arrival of the head until End, or until the client is
/// gone if the handler allows that (OnAbort).
class HttpExchange {
 public:
  [[nodiscard]] const HttpHead& head() const noexcept { return head_; }
  /// The whole body; empty in HttpHandler::OnHead.
  [[nodiscard]] std::string_view body() const noexcept { return body_; }
  [[nodiscard]] const Peer& peer() const noexcept;
  /// Memory for the handler, which is freed as a whole after End.
  [[nodiscard]] std::pmr::memory_resource& memory() noexcept { return memory_; }

  /// Writes the status line and the common fields. Append field lines, with CRLF, then call End.
  OutBuffer& Begin(int status);
  /// Ends the connection after the response; pipelined requests are dropped. Call it before Begin.
  void CloseAfterAnswer() noexcept;
  /// Sends the response, without a Content-Type field if `content_type` is empty, and ends the
  /// exchange, which must not be used afterwards.
  void End(std::string_view content_type, std::string_view body);

  /// Allows the exchange to end without a response: if the client disconnects before End,
  /// `aborted(context)` is called, and the exchange must not be used afterwards.
  using Aborted = void (*)(void* context) noexcept;
  void OnAbort(Aborted aborted, void* context) noexcept {
    aborted_ = aborted;
    abort_context_ = context;
  }

 private:
  friend class HttpConnection;
  friend class HttpExchangePool;

  static constexpr std::size_t kArena = 8192;

  HttpConnection* connection_ = nullptr;
  Aborted aborted_ = nullptr;
  void* abort_context_ = nullptr;
  HttpHead head_;
  std::string_view body_;
  std::array<std::byte, kArena> arena_;
  std::pmr::monotonic_buffer_resource memory_{arena_.data(), arena_.size()};
};

/// The unused exchanges of one listener.
class HttpExchangePool final : private Timer {
 public:
  using Timer::Timer;

  [[nodiscard]] std::unique_ptr<HttpExchange> Take() {
    if (free_.empty()) {
      free_.reserve(made_ + 1);  // So that Give cannot fail.
      auto made = std::make_unique<HttpExchange>();
      ++made_;
      return made;
    }
    auto exchange = std::move(free_.back());
    free_.pop_back();
    return exchange;
  }
  /// Takes an exchange back. The handler of the exchange may still be running, so surplus exchanges
  /// are deleted later, by a timer.
  void Give(std::unique_ptr<HttpExchange> exchange) noexcept {
    exchange->aborted_ = nullptr;
    exchange->body_ = {};
    exchange->memory_.release();
    free_.push_back(std::move(exchange));
    if (free_.size() > kKept && !armed()) ArmAt(Clock::now());
  }

 private:
  static constexpr std::size_t kKept = 128;  ///< 128 exchanges take 1.6 MB.
  void OnTimer(Clock::time_point) override {
    made_ -= free_.size() - kKept;
    free_.resize(kKept);
  }

  std::vector<std::unique_ptr<HttpExchange>> free_;
  std::size_t made_ = 0;  ///< Exchanges that exist, free or not.
};

/// Answers the requests of a listener. There is one handler per reactor.
class HttpHandler {
 public:
  /// The result of OnHead if the handler accepts any body that the listener accepts.
  static constexpr std::size_t kAnyBody = static_cast<std::size_t>(-1);

  virtual ~HttpHandler() = default;
  /// Handles a whole request. Must call Begin and End, now or later, on the reactor's thread.
  virtual void Handle(HttpExchange& exchange) noexcept = 0;
  /// Called once if a head arrives before its body, so that a rejected caller cannot make the
  /// server buffer a body. Returns the length of the longest body that the handler accepts, or
  /// nullopt if the handler answers without the body, now or later, as in Handle. The connection is
  /// closed after such an answer.
  [[nodiscard]] virtual std::optional<std::size_t> OnHead(HttpExchange& exchange) noexcept {
    (void)exchange;
    return kAnyBody;
  }
};

/// Returns the value of the Date header, valid until the next call on this thread.
[[nodiscard]] std::string_view HttpDate() noexcept;

/// Returns the reason phrase of a status, as `Not Found`; `Unknown` if there is none.
[[nodiscard]] std::string_view ReasonPhrase(int status) noexcept;

/// Answers with a problem document (RFC 9457). `detail` and `pointer` are escaped.
void AnswerProblem(HttpExchange& exchange, int status, std::string_view detail,
                   std::string_view pointer = {}, std::string_view field_lines = {});

/// Selects whether the body of a response is sent; after HEAD it is not.
enum class RefusalBody : bool { kOmitted, kSent };
/// Writes the response to a request that was refused before a handler received it, with
/// `Connection: close`.
void WriteRefusal(OutBuffer& out, const HttpRefusal& refusal,
                  RefusalBody sent = RefusalBody::kSent);

/// Writes a problem document.
void WriteProblem(OutBuffer& body, int status, std::string_view detail,
                  std::string_view pointer = {});

/// Writes `text` as the inside of a JSON string. Bytes that are not UTF-8 become U+FFFD.
void WriteJsonText(OutBuffer& out, std::string_view text);

}  // namespace tidegate::net
