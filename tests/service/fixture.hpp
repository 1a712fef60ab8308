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
#include "support/http_client.hpp"
#include "tidegate/clock.hpp"

namespace tidegate::service {

using test::Get;
using test::HttpClient;
using test::HttpResponse;
using test::kPatience;
using test::Post;

/// A server on free ports of loopback, with a clock that the test moves.
class Service {
 public:
  /// `yaml` is a configuration without `listen`.
  explicit Service(std::string_view yaml, int threads = 1) : Service(ConfigOf(yaml), threads) {}
  explicit Service(const Config& config, int threads = 1);
  ~Service();

  [[nodiscard]] static Config ConfigOf(std::string_view yaml);
  [[nodiscard]] net::Endpoint api() const { return server_->api(); }
  [[nodiscard]] net::Endpoint admin() const { return server_->admin(); }
  [[nodiscard]] Server& server() { return *server_; }
  ManualClock& clock() { return clock_; }
  void Advance(Micros by) { clock_.Advance(by); }

  /// Sends a request and returns the response. All requests use one keep-alive connection.
  HttpResponse Ask(std::string_view path, std::string_view body);
  HttpResponse Decide(std::string_view body) { return Ask("/v1/decide", body); }
  std::string Metrics();
  /// Returns the value of the line of /metrics with this name and labels; 0 if there is no such
  /// line.
  double Metric(std::string_view name_and_labels);
  bool Reload(std::string_view yaml);

 private:
  ManualClock clock_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<HttpClient> client_;
};

/// Returns `{"rule":"r","identity":"i"}` with the members of `more` appended; each of them starts
/// with a comma.
[[nodiscard]] std::string ByRule(std::string_view rule, std::string_view identity,
                                 std::string_view more = {});

}  // namespace tidegate::service
