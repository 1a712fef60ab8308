// SPDX-License-Identifier: Apache-2.0
// A gateway in this process on free ports, with a clock for its limits that the tests move, clients
// that send exactly the given bytes, and upstreams that do.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gateway/behaviour/scripted_upstream.hpp"
#include "gateway/behaviour/wire.hpp"
#include "service/fixture.hpp"

namespace tidegate::behaviour {

/// A client of the gateway.
class Client : public test::HttpClient {
 public:
  using HttpClient::HttpClient;
  HttpResponse Get(std::string_view target, std::string_view lines = {});
};

/// `GET /target` with `Host: test` and more field lines, each with its CRLF.
[[nodiscard]] std::string GetText(std::string_view target, std::string_view lines = {});
[[nodiscard]] std::string RequestText(std::string_view method, std::string_view target,
                                      std::string_view lines, std::string_view body);

class Gate {
 public:
  /// `yaml` without `listen`. Without `access_log` none is kept.
  explicit Gate(std::string_view yaml, int threads = 1);
  ~Gate();

  [[nodiscard]] static Config ConfigOf(std::string_view yaml);
  [[nodiscard]] net::Endpoint at() const { return server_->gateway(); }
  [[nodiscard]] Server& server() { return *server_; }
  void Advance(Micros by) { clock_.Advance(by); }
  bool Reload(std::string_view yaml);
  /// On a connection of its own.
  HttpResponse Get(std::string_view target, std::string_view lines = {});
  /// What the API tells of a rule and an identity, without charging it.
  boost::json::object Peek(std::string_view rule, std::string_view identity);
  [[nodiscard]] std::int64_t Remaining(std::string_view rule, std::string_view identity);
  /// The value of one line of /metrics, by what stands before it; 0 if there is none.
  double Metric(std::string_view name_and_labels);

 private:
  ManualClock clock_;
  std::unique_ptr<Server> server_;
};

/// One route to one upstream of these targets (`[url, url]` or `url`), more keys of that upstream,
/// and whatever else.
[[nodiscard]] std::string Routed(std::string_view targets, std::string_view upstream_keys = {},
                                 std::string_view more = {});

}  // namespace tidegate::behaviour
