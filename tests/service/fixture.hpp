// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/endpoint.hpp"
#include "server/server.hpp"
#include "service/stream.hpp"
#include "tidegate/clock.hpp"

namespace tidegate::service {

/// Requests are few and the machine may be busy: a test that waits so long has failed.
inline constexpr std::chrono::seconds kPatience{5};

/// One answer as it came.
struct HttpAnswer {
  int status = 0;  ///< 0: none came; the test has failed already.
  std::string reason;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;

  /// The value of the first field of that name, in any case; empty: there is none.
  [[nodiscard]] std::string Field(std::string_view name) const;
  [[nodiscard]] int Count(std::string_view name) const;
  [[nodiscard]] bool Has(std::string_view name) const { return Count(name) != 0; }
  /// The body as JSON, an empty object (and a failed test) if it is none.
  [[nodiscard]] boost::json::object Json() const;
};

/// The bytes of a request with a JSON body.
[[nodiscard]] std::string Post(std::string_view path, std::string_view body,
                               std::string_view more_fields = {});
[[nodiscard]] std::string Get(std::string_view path, std::string_view method = "GET");

/// A blocking connection that sends exactly what it is told to. Nothing waits longer than
/// kPatience.
class HttpClient {
 public:
  enum class Body : bool { kYes, kNo };
  /// What came of waiting for the other side's end.
  enum class End : std::uint8_t { kClosed, kReset, kBytes, kOpen };

  explicit HttpClient(const net::Endpoint& to, int receive_buffer = 0)
      : HttpClient(std::make_unique<Stream>(to, receive_buffer)) {}
  explicit HttpClient(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

  /// False: the other side takes no more.
  bool Send(std::string_view bytes) { return stream_->Send(bytes); }
  /// The next answer; without one the test fails. kNo: as after HEAD.
  HttpAnswer Read(Body body = Body::kYes);
  /// The next answer, or nothing if the connection ends before it is complete.
  std::optional<HttpAnswer> TryRead(Body body = Body::kYes);
  HttpAnswer Ask(std::string_view path, std::string_view body) {
    Send(Post(path, body));
    return Read();
  }
  void EndSending() { stream_->EndSending(); }
  /// Waits for the connection's end, at most so long.
  End WaitForEnd(std::chrono::milliseconds at_most = kPatience);

  [[nodiscard]] int fd() const noexcept { return stream_->fd(); }

 private:
  /// False: nothing more comes.
  bool Receive() { return stream_->Receive(received_) == Stream::Got::kBytes; }

  std::unique_ptr<Stream> stream_;
  std::string received_;
};

/// A server on free ports of this machine with a clock that the test moves.
class Service {
 public:
  /// `yaml` without `listen`.
  explicit Service(std::string_view yaml, int threads = 1) : Service(ConfigOf(yaml), threads) {}
  explicit Service(const Config& config, int threads = 1);
  ~Service();

  [[nodiscard]] static Config ConfigOf(std::string_view yaml);
  [[nodiscard]] net::Endpoint api() const { return server_->api(); }
  [[nodiscard]] net::Endpoint admin() const { return server_->admin(); }
  [[nodiscard]] Server& server() { return *server_; }
  ManualClock& clock() { return clock_; }
  void Advance(Micros by) { clock_.Advance(by); }

  /// On one keep-alive connection for all of them.
  HttpAnswer Ask(std::string_view path, std::string_view body);
  HttpAnswer Decide(std::string_view body) { return Ask("/v1/decide", body); }
  std::string Metrics();
  /// The value of one line of /metrics, by what stands before it; 0 if there is none.
  double Metric(std::string_view name_and_labels);
  bool Reload(std::string_view yaml);

 private:
  ManualClock clock_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<HttpClient> client_;
};

/// `{"rule":"r","identity":"i"}`, and more members if given (each with a comma before it).
[[nodiscard]] std::string ByRule(std::string_view rule, std::string_view identity,
                                 std::string_view more = {});

}  // namespace tidegate::service
