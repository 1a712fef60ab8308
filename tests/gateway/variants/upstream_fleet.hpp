// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gateway/case_runner.hpp"
#include "gateway/proxy_process.hpp"
#include "gateway/raw_upstream.hpp"
#include "support/files.hpp"

namespace tidegate::gateway_test {

/// One of the ways in which an upstream interprets requests.
struct Reader {
  std::string name;    ///< Name of the reader, such as `nginx files`.
  std::string header;  ///< Response field, in lower case, that reports what was served.
};

/// A real server behind the gateway, on 127.0.0.1.
struct Upstream {
  std::string name;  ///< Name of the upstream in the configuration; its host is `NAME.test`.
  int port = 0;
  std::vector<Reader> readers;

  [[nodiscard]] std::string Host() const { return name + ".test"; }
};

/// Real upstreams: nginx with files, nginx as a proxy before another nginx (with and without a URI
/// part in proxy_pass), Express, and a Python server that interprets each request in several ways.
/// They serve `/admin/**`, `POST /v1/login` and a few other resources, and report in each response
/// which of these they served.
class UpstreamFleet {
 public:
  /// Starts all upstreams. Throws if one of them is not installed or does not start.
  UpstreamFleet();
  UpstreamFleet(const UpstreamFleet&) = delete;
  UpstreamFleet& operator=(const UpstreamFleet&) = delete;

  [[nodiscard]] const std::vector<Upstream>& all() const noexcept { return all_; }
  [[nodiscard]] const Upstream& Named(const std::string& name) const;
  /// Upstream that records the requests that it receives; its host is `raw.test`.
  [[nodiscard]] RawUpstream& raw() noexcept { return raw_; }

 private:
  void MakeFiles();
  void StartNginx();
  void StartExpress();
  void StartPython();

  test::TemporaryFolder folder_;
  std::vector<Upstream> all_;
  std::vector<std::unique_ptr<ProxyProcess>> processes_;
  RawUpstream raw_;
};

/// Returns what a reader served for a request: `admin`, `login`, `other` or `none`; empty if the
/// request did not reach it.
[[nodiscard]] std::string ServedBy(const Reader& reader, const Seen& seen);
/// Returns true if `served` is a resource that the configuration protects.
[[nodiscard]] bool IsProtected(const std::string& served);
/// Returns true if the request reached the upstream.
[[nodiscard]] bool Reached(const Upstream& upstream, const Seen& seen);
/// Returns the status of the first final response; 0 if there is none.
[[nodiscard]] int StatusOf(const Seen& seen);
/// Returns true if the server failed rather than rejected the request: status 500, 502, 503 or 504.
[[nodiscard]] bool Failed(const Seen& seen);

/// A Tidegate in front of the fleet, with a gateway that has a route by host for each upstream, and
/// an API. Peers with the address 127.0.0.1 or in 127.77.0.0/16 are trusted.
class FleetGateway {
 public:
  /// `more`: additional sections of the configuration, such as rules. `route`: additional keys of
  /// each route, such as `, encoded_slashes: match`. Throws if Tidegate does not start.
  FleetGateway(UpstreamFleet& fleet, const std::string& more, const std::string& route = {});

  [[nodiscard]] int gateway_port() const { return process_->port(); }
  [[nodiscard]] int api_port() const { return api_port_; }
  [[nodiscard]] ProxyProcess& process() { return *process_; }

 private:
  int api_port_;
  std::unique_ptr<ProxyProcess> process_;
};

/// Returns a different address for each row `index` of the run `run`: `net`.run.x.y.
[[nodiscard]] std::string AddressOf(int net, std::size_t run, std::size_t index);
[[nodiscard]] std::string Replaced(std::string text, const std::string& from,
                                   const std::string& to);

}  // namespace tidegate::gateway_test
