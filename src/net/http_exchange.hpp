// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <string_view>
#include <vector>

#include "net/http1_parser.hpp"
#include "net/out_buffer.hpp"

namespace tidegate::net {

class HttpConnection;

/// The other end of a connection: its address as 16 bytes, IPv4 mapped into IPv6.
struct Peer {
  std::array<unsigned char, 16> bytes{};
  unsigned short port = 0;
  bool secure = false;    ///< Through TLS,
  bool verified = false;  ///< with a certificate of its own that was accepted.
  bool relayed = false;   ///< A proxy's, which did not say whom it speaks for.
};

/// One request with its answer. Lives from the moment at which the whole request is there until
/// End, or until the client is gone if the handler allows that (OnAbort).
class HttpExchange {
 public:
  HttpExchange() = default;
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  [[nodiscard]] const HttpHead& head() const noexcept { return head_; }
  [[nodiscard]] std::string_view body() const noexcept { return body_; }
  [[nodiscard]] const Peer& peer() const noexcept;
  /// For what the answer needs until End; given back as a whole then.
  [[nodiscard]] std::pmr::memory_resource& memory() noexcept { return memory_; }

  /// The status line and the fields that every answer has. Write more field lines into the buffer,
  /// each with its CRLF, then call End, without waiting in between.
  OutBuffer& Begin(int status);
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

/// Exchanges to use again: as many as were ever under way at once.
class HttpExchangePool {
 public:
  [[nodiscard]] HttpExchange* Take();
  void Give(HttpExchange* exchange) noexcept;

 private:
  std::vector<std::unique_ptr<HttpExchange>> all_;
  std::vector<HttpExchange*> free_;
};

/// What answers requests: one per reactor. Must call Begin and End on every exchange, now or later,
/// on the reactor's thread.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void Handle(HttpExchange& exchange) noexcept = 0;
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
