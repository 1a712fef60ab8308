// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "net/http1_parser.hpp"
#include "net/http_exchange.hpp"
#include "net/out_buffer.hpp"
#include "rules/gateway_spec.hpp"

namespace tidegate {

/// How the body of an answer is told to the client.
enum class AnswerBody : std::uint8_t {
  kNone,    ///< There is none, nor a length (204, 304 without one, 1xx).
  kLength,  ///< Exactly so many bytes; after HEAD that is only what the length says.
  kStream,  ///< Until SendEnd.
};

/// The client's side of one request, whatever protocol it speaks: HTTP/1.1 is a connection of its
/// own (client_connection.hpp), HTTP/2 would be one of many streams. The passage asks, the stream
/// answers; nothing here waits.
class ClientStream {
 public:
  enum class Body : std::uint8_t {
    kData,     ///< body() is some of it; TakeBody when it was passed on.
    kWait,     ///< More will come: the passage is told.
    kEnd,      ///< That was all; trailers() may be there.
    kRefused,  ///< It is malformed or too long: refusal().
    kGone,     ///< The client broke off.
  };

  [[nodiscard]] virtual const net::Peer& peer() const noexcept = 0;

  // --- The request's body ---
  /// All of it, if it is here already; it stays until it is read or the request is over.
  [[nodiscard]] virtual std::optional<std::string_view> WholeBody() const = 0;
  /// From the first call on the head's views may point nowhere.
  [[nodiscard]] virtual Body ReadBody() = 0;
  [[nodiscard]] virtual std::string_view body() const noexcept = 0;
  virtual void TakeBody() = 0;
  [[nodiscard]] virtual std::span<const net::HttpField> trailers() const noexcept = 0;
  /// The client waits for a word before it sends its body, and nobody has said it yet.
  [[nodiscard]] virtual bool awaits_continue() const noexcept = 0;
  [[nodiscard]] virtual const net::HttpRefusal& refusal() const noexcept = 0;

  // --- The answer ---
  /// Write field lines into the buffer, each with its CRLF, none of them about framing or the
  /// connection; then EndHead, without waiting in between.
  [[nodiscard]] virtual net::OutBuffer& BeginHead(int status, std::string_view reason) = 0;
  virtual void EndHead(AnswerBody body, std::uint64_t length) = 0;
  /// The same of an interim answer (1xx). False: this client understands none.
  [[nodiscard]] virtual net::OutBuffer* BeginInterim(int status, std::string_view reason) = 0;
  virtual void EndInterim() = 0;
  /// Takes back what was written of this answer, if none of it has left yet. False: some has.
  [[nodiscard]] virtual bool Retract() noexcept = 0;
  /// What the client still sends is of no use: the connection ends with this answer. Before its
  /// head.
  virtual void CloseAfter() noexcept = 0;
  /// After 101: from now on both bodies are raw bytes, and each ends when its sender ends its half
  /// of the connection.
  virtual void Switch() = 0;
  /// Tells the client that no more bytes will follow; the client may still send. REQUIRES: Switch
  /// was called, and the stream is not blocked.
  virtual void EndSending() = 0;
  virtual void SendBody(std::string_view data) = 0;
  virtual void SendEnd(std::span<const net::HttpField> trailers, const HeaderEdits& edits) = 0;
  /// False: the client is gone.
  [[nodiscard]] virtual bool Flush() = 0;
  /// It takes no more for now: the passage is told when it does.
  [[nodiscard]] virtual bool blocked() const noexcept = 0;
  /// Bytes that came and went, of this request.
  [[nodiscard]] virtual std::uint64_t received() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t sent() const noexcept = 0;

  /// The answer has been given, or cannot be given as it was begun. The stream lets go of the
  /// passage, which must not touch it afterwards.
  enum class Ending : std::uint8_t { kComplete, kCut };
  virtual void Finish(Ending ending) = 0;

 protected:
  ~ClientStream() = default;
};

}  // namespace tidegate
