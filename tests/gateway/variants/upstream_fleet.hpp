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

/// One way in which an upstream reads requests.
struct Reader {
  std::string name;    ///< As `nginx files`.
  std::string header;  ///< The response field in which it says what it served, in lower case.
};

/// A real server behind the gateway, on 127.0.0.1.
struct Upstream {
  std::string name;  ///< Of the upstream in the configuration; `NAME.test` is its host.
  int port = 0;
  std::vector<Reader> readers;

  [[nodiscard]] std::string Host() const { return name + ".test"; }
};

/// nginx with files, nginx as a proxy before another nginx (with and without a URI part in
/// proxy_pass), Express, and a Python server that reads each request in several ways. They serve
/// `/admin/**`, `POST /v1/login` and a few other things, and say which of them in each response.
class UpstreamFleet {
 public:
  /// Throws where one of them is not installed or does not come up.
  UpstreamFleet();
  UpstreamFleet(const UpstreamFleet&) = delete;
  UpstreamFleet& operator=(const UpstreamFleet&) = delete;

  [[nodiscard]] const std::vector<Upstream>& all() const noexcept { return all_; }
  [[nodiscard]] const Upstream& Named(const std::string& name) const;
  /// Keeps the requests that it is sent; its host is `raw.test`.
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

/// What one reader made of a request: `admin`, `login`, `other` or `none`; or nothing if the
/// request did not reach it.
[[nodiscard]] std::string ServedBy(const Reader& reader, const Seen& seen);
/// Whether that is a resource that the configuration protects.
[[nodiscard]] bool IsProtected(const std::string& served);
/// Whether the upstream has seen the request at all.
[[nodiscard]] bool Reached(const Upstream& upstream, const Seen& seen);
/// Of the first final response; 0: there is none.
[[nodiscard]] int StatusOf(const Seen& seen);
/// Whether a server failed rather than refused: 500, 502, 503 or 504.
[[nodiscard]] bool Failed(const Seen& seen);

/// A Tidegate before the fleet: a route by host for each upstream, a gateway and an API. Peers with
/// the address 127.0.0.1 or in 127.77.0.0/16 are trusted.
class FleetGateway {
 public:
  /// `more`: further sections of the configuration, such as rules. `route`: further keys of each
  /// route, as `, encoded_slashes: match`. Throws where it does not come up.
  FleetGateway(UpstreamFleet& fleet, const std::string& more, const std::string& route = {});

  [[nodiscard]] int gateway_port() const { return process_->port(); }
  [[nodiscard]] int api_port() const { return api_port_; }
  [[nodiscard]] ProxyProcess& process() { return *process_; }

 private:
  int api_port_;
  std::unique_ptr<ProxyProcess> process_;
};

/// An address of its own for the row `index` in the run `run`: `net`.run.x.y.
[[nodiscard]] std::string AddressOf(int net, std::size_t run, std::size_t index);
[[nodiscard]] std::string Replaced(std::string text, const std::string& from,
                                   const std::string& to);

}  // namespace tidegate::gateway_test
