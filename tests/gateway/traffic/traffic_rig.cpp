// SPDX-License-Identifier: Apache-2.0
#include "gateway/traffic/traffic_rig.hpp"

#include <stdexcept>

#include "support/ports.hpp"

namespace tidegate::gateway_test {

std::unique_ptr<ProxyProcess> TidegateWithRules(int upstream_port, const TidegateOptions& options) {
  const int port = test::FreePort();
  const std::string at = "127.0.0.1:";
  const std::string config =
      "listen: { gateway: \"" + at + std::to_string(port) + "\", api: off, admin: \"" + at +
      std::to_string(test::FreePort()) +
      "\" }\n"
      "access_log: off\n"
      "deny: [{ path: /admin/** }]\n"
      "rules:\n"
      "  - { id: login, match: { path: /v1/login, method: POST }, per: client_ip, limit: 5/m }\n"
      "  - { id: key, per: \"header:x-api-key | cookie:sid | query:api_key\", limit: 100000/s }\n"
      "  - { id: address, per: client_ip, limit: 100000/s }\n"
      "routes: [{ upstream: u" +
      options.route +
      " }]\n"
      "upstreams: { u: { targets: [\"http://" +
      at + std::to_string(upstream_port) + "\"], ejection: off, retries: off" + options.upstream +
      " } }\n" + options.sections;
  return ProxyProcess::Other(
      port, {{"tidegate.yaml", config}},
      {TIDEGATE_BINARY, "serve", "--threads", "2", "--config", "FOLDER/tidegate.yaml"});
}

std::unique_ptr<ProxyProcess> RequiredNginx(int upstream_port) {
  auto nginx = ProxyProcess::Nginx(upstream_port);
  if (nginx == nullptr) throw std::runtime_error("nginx is not installed; ./dev test installs it");
  return nginx;
}

}  // namespace tidegate::gateway_test
