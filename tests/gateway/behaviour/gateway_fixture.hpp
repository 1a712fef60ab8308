// SPDX-License-Identifier: Apache-2.0
// Fixture of the behaviour tests: a gateway in this process on free ports, a clock for its limits
// that the tests move, and clients that send exactly the given bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gateway/behaviour/scripted_upstream.hpp"
#include "gateway/behaviour/wire.hpp"
#include "service/fixture.hpp"

namespace tidegate::behaviour {

/// A client connection to the gateway.
class Client : public test::HttpClient {
 public:
  using HttpClient::HttpClient;
  HttpResponse Get(std::string_view target, std::string_view lines = {});
};

/// Returns the bytes of a GET request for `target` with `Host: test` and the additional field lines
/// `lines`, each with its CRLF.
[[nodiscard]] std::string GetText(std::string_view target, std::string_view lines = {});
[[nodiscard]] std::string RequestText(std::string_view method, std::string_view target,
                                      std::string_view lines, std::string_view body);

class Gate {
 public:
  /// `yaml`: a configuration without `listen`. If it has no `access_log`, no access log is written.
  explicit Gate(std::string_view yaml, int threads = 1);
  ~Gate();

  [[nodiscard]] static Config ConfigOf(std::string_view yaml);
  [[nodiscard]] net::Endpoint at() const { return server_->gateway(); }
  [[nodiscard]] Server& server() { return *server_; }
  void Advance(Micros by) { clock_.Advance(by); }
  bool Reload(std::string_view yaml);
  /// Sends a GET request on a new connection and returns the response.
  HttpResponse Get(std::string_view target, std::string_view lines = {});
  /// Returns the state of a key of `rule` as the API reports it, without charging the key.
  boost::json::object Peek(std::string_view rule, std::string_view identity);
  [[nodiscard]] std::int64_t Remaining(std::string_view rule, std::string_view identity);
  /// Returns the value of the line of /metrics that starts with `name_and_labels`; 0 if there is
  /// none.
  double Metric(std::string_view name_and_labels);

 private:
  ManualClock clock_;
  std::unique_ptr<Server> server_;
};

/// Returns a configuration with one route to one upstream. `targets`: the upstream's targets
/// (`[url, url]` or `url`); `upstream_keys`: its other keys; `more`: additional sections.
[[nodiscard]] std::string Routed(std::string_view targets, std::string_view upstream_keys = {},
                                 std::string_view more = {});

}  // namespace tidegate::behaviour
