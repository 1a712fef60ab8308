// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "config/gateway_spec.hpp"
#include "net/buffers.hpp"
#include "net/http1_parser.hpp"
#include "net/listener.hpp"

namespace tidegate {

/// The ways in which a client can find the end of a response's body.
enum class AnswerBody : std::uint8_t {
  kNone,    ///< There is no body and no length (204, 304 without a length, 1xx).
  kLength,  ///< Content-Length gives the end; a response to HEAD has only the field.
  kStream,  ///< SendEnd marks the end.
};

/// The client's side of one request, as a stream: it provides the body of the request and its end,
/// accepts the head, body and end of the response (Finish; kCut resets the stream), and limits how
/// much may be sent (blocked). With HTTP/1.1 a connection is one stream (client_connection.hpp);
/// with HTTP/2 it would have many. No function blocks. A stream calls
/// ProxiedExchange::OnClientReady when it can be read or written.
class ClientStream {
 public:
  enum class Body : std::uint8_t {
    kData,     ///< body() is a part of the body. Call TakeBody after forwarding it.
    kWait,     ///< More will come: the stream will call the exchange.
    kEnd,      ///< The body is complete; there may be trailers().
    kRefused,  ///< The body is malformed or too long: see refusal().
    kGone,     ///< The client disconnected.
  };

  [[nodiscard]] virtual const net::Peer& peer() const noexcept = 0;

  // --- The request's body ---
  /// Returns the whole body if it has arrived already. It stays until it is read or the request
  /// ends.
  [[nodiscard]] virtual std::optional<std::string_view> WholeBody() const = 0;
  /// Reads the next part. The first call makes the views of the request's head invalid.
  [[nodiscard]] virtual Body ReadBody() = 0;
  [[nodiscard]] virtual std::string_view body() const noexcept = 0;
  virtual void TakeBody() = 0;
  [[nodiscard]] virtual std::span<const net::HttpField> trailers() const noexcept = 0;
  /// Returns true if the client waits for 100 (Continue) before it sends its body, and neither a
  /// 100 nor a part of the body was sent yet.
  [[nodiscard]] virtual bool awaits_continue() const noexcept = 0;
  [[nodiscard]] virtual const net::HttpRefusal& refusal() const noexcept = 0;

  // --- The response ---
  /// Begins the head of the final response. Write field lines into the buffer, each with its CRLF
  /// and none about framing or the connection, and then call EndHead.
  [[nodiscard]] virtual net::OutBuffer& BeginHead(int status, std::string_view reason) = 0;
  virtual void EndHead(AnswerBody body, std::uint64_t length) = 0;
  /// Begins an interim response (1xx). Returns nullptr if this client does not understand them.
  [[nodiscard]] virtual net::OutBuffer* BeginInterim(int status, std::string_view reason) = 0;
  virtual void EndInterim() = 0;
  /// Removes what was written of this response. Returns false if some of it has been sent already.
  [[nodiscard]] virtual bool Retract() noexcept = 0;
  /// Closes the connection after this response, because the rest of the request will not be read.
  /// Call it before BeginHead.
  virtual void CloseAfter() noexcept = 0;
  /// After a 101: from now on both bodies are raw bytes, and each ends when its sender ends its
  /// half of the connection.
  virtual void Switch() = 0;
  /// Tells the client that no more bytes will follow; the client may still send. REQUIRES: Switch
  /// was called, and the stream is not blocked.
  virtual void EndSending() = 0;
  virtual void SendBody(std::string_view data) = 0;
  virtual void SendEnd(std::span<const net::HttpField> trailers, const HeaderEdits& edits) = 0;
  /// Sends the pending output. Returns false if the client is gone.
  [[nodiscard]] virtual bool Flush() = 0;
  /// Returns true if the client accepts no more bytes for now. The stream calls the exchange when
  /// the client accepts more.
  [[nodiscard]] virtual bool blocked() const noexcept = 0;
  /// These two return the bytes received for this request, and the bytes sent of its response.
  [[nodiscard]] virtual std::uint64_t received() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t sent() const noexcept = 0;

  /// Ends the request: the response is complete, or (kCut) it will never be. The stream and the
  /// exchange do not use each other afterwards.
  enum class Ending : std::uint8_t { kComplete, kCut };
  virtual void Finish(Ending ending) = 0;

 protected:
  ~ClientStream() = default;
};

}  // namespace tidegate
