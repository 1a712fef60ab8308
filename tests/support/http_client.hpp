// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 for tests. Messages are parsed without the code under test and keep the bytes that
// arrived.
#pragma once

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/stream.hpp"

namespace tidegate::test {

/// Header or trailer fields in their order. Names are compared case-insensitively.
struct HttpFields : std::vector<std::pair<std::string, std::string>> {
  /// Returns the value of the first field with that name; empty if there is none.
  [[nodiscard]] std::string Value(std::string_view name) const;
  [[nodiscard]] int Count(std::string_view name) const;
  /// Returns all values of the fields with that name in their order, joined by ", ".
  [[nodiscard]] std::string List(std::string_view name) const;
};

/// A request or a response: its head and body.
struct HttpMessage {
  std::string head;   ///< The bytes of the head, including the empty line at its end.
  std::string start;  ///< The request line or status line.
  HttpFields fields;
  std::string body;  ///< The body without chunk framing.
  HttpFields trailers;
  bool whole = true;  ///< True if the body is complete.

  [[nodiscard]] std::string Field(std::string_view name) const { return fields.Value(name); }
  [[nodiscard]] int Count(std::string_view name) const { return fields.Count(name); }
  [[nodiscard]] bool Has(std::string_view name) const { return Count(name) != 0; }
};

struct HttpRequest : HttpMessage {
  [[nodiscard]] std::string method() const { return start.substr(0, start.find(' ')); }
  [[nodiscard]] std::string target() const;
};

struct HttpResponse : HttpMessage {
  int status = 0;  ///< HTTP status; 0: no response arrived, and the test has failed.
  std::string reason;

  /// Returns the body as JSON. If it is no object, returns an empty one, and the test fails.
  [[nodiscard]] boost::json::object Json() const;
};

/// Reads a head. Returns false if the stream ends before it is complete.
[[nodiscard]] bool ReadHead(Stream& stream, HttpMessage& message);
/// Reads the body whose length the header fields announce. Without such a field, a request has no
/// body, and the body of a response lasts until the end of the stream.
void ReadRequestBody(Stream& stream, HttpRequest& request);
void ReadResponseBody(Stream& stream, HttpResponse& response);

/// Returns the bytes of a POST request with a JSON body.
[[nodiscard]] std::string Post(std::string_view path, std::string_view body,
                               std::string_view more_fields = {});
[[nodiscard]] std::string Get(std::string_view path, std::string_view method = "GET");

/// A connection that sends exactly the bytes that a test gives it, and reads responses.
class HttpClient {
 public:
  enum class Body : bool { kYes, kNo };
  using End = Stream::End;

  explicit HttpClient(const net::Endpoint& to, int receive_buffer = 0)
      : HttpClient(std::make_unique<Stream>(to, receive_buffer)) {}
  explicit HttpClient(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

  [[nodiscard]] Stream& stream() noexcept { return *stream_; }
  [[nodiscard]] int fd() const noexcept { return stream_->fd(); }
  /// Sends bytes. Returns false if the other side accepts no more.
  bool Send(std::string_view bytes) { return stream_->Send(bytes); }
  void EndSending() { stream_->EndSending(); }
  End WaitForEnd(std::chrono::milliseconds at_most = kPatience) {
    return stream_->WaitForEnd(at_most);
  }

  /// Returns the next response, which may be an interim one. The test fails if the response is
  /// incomplete. kNo: the response has no body, as after HEAD.
  HttpResponse Read(Body body = Body::kYes);
  /// Returns the next response even if it is incomplete; `whole` tells whether the body is
  /// complete.
  HttpResponse ReadPartial(Body body = Body::kYes);
  /// Returns the next response, or nothing if the connection ends before it is complete.
  std::optional<HttpResponse> TryRead(Body body = Body::kYes);

  HttpResponse Ask(std::string_view request) {
    Send(request);
    return Read();
  }
  /// Sends a POST request with a JSON body and returns the response.
  HttpResponse Ask(std::string_view path, std::string_view body) { return Ask(Post(path, body)); }

 private:
  std::unique_ptr<Stream> stream_;
};

}  // namespace tidegate::test
