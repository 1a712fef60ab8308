// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 for tests: the bytes as they came and what they mean, read without the code under test.
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

/// Header or trailer fields in their order. Names are compared in any case.
struct HttpFields : std::vector<std::pair<std::string, std::string>> {
  /// The value of the first field of that name; empty if there is none.
  [[nodiscard]] std::string Value(std::string_view name) const;
  [[nodiscard]] int Count(std::string_view name) const;
  /// All values of that name in their order, joined by ", ".
  [[nodiscard]] std::string List(std::string_view name) const;
};

/// A head and a body, of either direction.
struct HttpMessage {
  std::string head;   ///< As it came, with the empty line.
  std::string start;  ///< The request line or status line.
  HttpFields fields;
  std::string body;  ///< Without its framing.
  HttpFields trailers;
  bool whole = true;  ///< The body is complete.

  [[nodiscard]] std::string Field(std::string_view name) const { return fields.Value(name); }
  [[nodiscard]] int Count(std::string_view name) const { return fields.Count(name); }
  [[nodiscard]] bool Has(std::string_view name) const { return Count(name) != 0; }
};

struct HttpRequest : HttpMessage {
  [[nodiscard]] std::string method() const { return start.substr(0, start.find(' ')); }
  [[nodiscard]] std::string target() const;
};

struct HttpResponse : HttpMessage {
  int status = 0;  ///< 0: none came, and the test has failed.
  std::string reason;

  /// The body as JSON; an empty object (and a failed test) if it is not an object.
  [[nodiscard]] boost::json::object Json() const;
};

/// Reads a head. Returns false if the stream ends before it is complete.
[[nodiscard]] bool ReadHead(Stream& stream, HttpMessage& message);
/// Reads the body that the fields of a head announce; without any it is empty for a request, and
/// lasts until the end of the stream for a response.
void ReadRequestBody(Stream& stream, HttpRequest& request);
void ReadResponseBody(Stream& stream, HttpResponse& response);

/// The bytes of a request with a JSON body.
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
  /// Returns false if the other side takes no more.
  bool Send(std::string_view bytes) { return stream_->Send(bytes); }
  void EndSending() { stream_->EndSending(); }
  End WaitForEnd(std::chrono::milliseconds at_most = kPatience) {
    return stream_->WaitForEnd(at_most);
  }

  /// Returns the next response, also an interim one; the test fails if it is not complete. kNo:
  /// there is no body, as after HEAD.
  HttpResponse Read(Body body = Body::kYes);
  /// The same; `whole` says whether the body is complete.
  HttpResponse ReadPartial(Body body = Body::kYes);
  /// Returns the next response, or nothing if the connection ends before it is complete.
  std::optional<HttpResponse> TryRead(Body body = Body::kYes);

  HttpResponse Ask(std::string_view request) {
    Send(request);
    return Read();
  }
  /// Posts JSON.
  HttpResponse Ask(std::string_view path, std::string_view body) { return Ask(Post(path, body)); }

 private:
  std::unique_ptr<Stream> stream_;
};

}  // namespace tidegate::test
