// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string_view>
#include <vector>

#include "net/http1_parser.hpp"
#include "net/out_buffer.hpp"
#include "net/peer_certificate.hpp"

namespace tidegate::net {

class HttpConnection;

/// The other end of a connection: its address as 16 bytes, IPv4 mapped into IPv6.
struct Peer {
  std::array<unsigned char, 16> bytes{};
  unsigned short port = 0;
  bool secure = false;    ///< The connection uses TLS.
  bool verified = false;  ///< The client presented a certificate, which was accepted.
  bool relayed = false;   ///< A proxy's, which did not say whom it speaks for.
  /// The names in the client's certificate; nullptr unless `verified`, so that other connections do
  /// not pay for it.
  std::shared_ptr<const PeerCertificate> certificate = {};
};

/// One request with its answer. Lives from the moment at which the head of the request has arrived
/// until End, or until the client is gone if the handler allows that (OnAbort).
class HttpExchange {
 public:
  HttpExchange() = default;
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  [[nodiscard]] const HttpHead& head() const noexcept { return head_; }
  /// The whole body; empty in HttpHandler::OnHead.
  [[nodiscard]] std::string_view body() const noexcept { return body_; }
  [[nodiscard]] const Peer& peer() const noexcept;
  /// For what the answer needs until End; given back as a whole then.
  [[nodiscard]] std::pmr::memory_resource& memory() noexcept { return memory_; }

  /// The status line and the fields that every answer has. Write more field lines into the buffer,
  /// each with its CRLF, then call End, without waiting in between.
  OutBuffer& Begin(int status);
  /// Makes the connection end after the answer; pipelined requests are dropped. Before Begin.
  void CloseAfterAnswer() noexcept;
  /// Sends the answer and ends the exchange: this object is gone afterwards. An empty
  /// `content_type` leaves that field out.
  void End(std::string_view content_type, std::string_view body);

  /// Lets the exchange end without an answer: if the client goes before End, `aborted(context)` is
  /// called and this object is gone. Without it the exchange stays until End, answer or not.
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

/// The unused exchanges of one reactor.
class HttpExchangePool {
 public:
  [[nodiscard]] std::unique_ptr<HttpExchange> Take();
  /// Takes back an exchange. Its handler may still be running, and may still free memory of the
  /// exchange, so the exchange is not deleted before Trim.
  void Give(std::unique_ptr<HttpExchange> exchange) noexcept;
  /// Deletes all but a few, so that a burst of requests does not hold its memory for ever.
  /// REQUIRES: no handler is running.
  void Trim() noexcept {
    if (free_.size() > kKept) Delete();
  }

 private:
  static constexpr std::size_t kKept = 128;  ///< 1.6 MB.
  void Delete() noexcept;

  std::vector<std::unique_ptr<HttpExchange>> free_;
  std::size_t made_ = 0;  ///< Exchanges that exist, free or not.
};

/// Answers requests; one per reactor.
class HttpHandler {
 public:
  /// The result of OnHead if the handler takes any body that the listener takes.
  static constexpr std::size_t kAnyBody = static_cast<std::size_t>(-1);

  virtual ~HttpHandler() = default;
  /// Handles a whole request. Must call Begin and End on the exchange, now or later, on the
  /// reactor's thread.
  virtual void Handle(HttpExchange& exchange) noexcept = 0;
  /// Called once if the head of a request arrives before its body, so that a caller who will be
  /// rejected anyway cannot make the server buffer a body. Returns the most bytes of the body that
  /// the handler takes; nullopt if it answers without the body, now or later, as in Handle. Then
  /// the connection is closed after the answer.
  [[nodiscard]] virtual std::optional<std::size_t> OnHead(HttpExchange& exchange) noexcept {
    (void)exchange;
    return kAnyBody;
  }
};

/// `404 Not Found` and the like: the reason phrase; `Unknown` where there is none.
[[nodiscard]] std::string_view ReasonPhrase(int status) noexcept;

/// An answer for what needs no more than a sentence: RFC 9457, `application/problem+json`.
/// `detail` and `pointer` may hold anything: they are escaped. An empty pointer is left out.
void AnswerProblem(HttpExchange& exchange, int status, std::string_view detail,
                   std::string_view pointer = {}, std::string_view field_lines = {});

/// The body of such an answer.
void WriteProblem(OutBuffer& body, int status, std::string_view detail,
                  std::string_view pointer = {});

/// Writes `text` as the inside of a JSON string. Bytes that are not UTF-8 become U+FFFD.
void WriteJsonText(OutBuffer& out, std::string_view text);

}  // namespace tidegate::net
