// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/proxy_process.hpp"
#include "gateway/raw_upstream.hpp"
#include "gateway/strict_reader.hpp"

namespace tidegate::proxies_test {

/// Pairs of a text in a recipe's file and its replacement. Each text must occur in the file:
/// otherwise a test could listen on the port of another process.
using Changes = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] std::string Recipe(const std::string& file, const Changes& changes);

/// Address of a client, and the request that it sends in addition to Host.
struct Client {
  std::string address = "127.0.0.2";
  std::string method = "GET";
  std::string target = "/api/x";
  std::string fields = {};
  std::string body = {};
  std::string host = "api.example.com";
};

/// The time that the proxy waits for tidegate. On a busy machine the 250 ms of the recipes can pass
/// before tidegate runs, and the proxy then lets the request pass. So only tests of this timeout
/// use kOfTheRecipe.
enum class Patience : std::uint8_t { kLong, kOfTheRecipe };

/// Differences from the recipes.
struct Setup {
  Changes tidegate = {};  ///< Changes to Tidegate's configuration.
  std::string more = {};  ///< Additional rules, and sections after them.
  Changes proxy = {};
  Patience patience = Patience::kLong;
};

/// A proxy between clients and an upstream, and a tidegate that the proxy sends forward-auth
/// requests to.
class Rig {
 public:
  /// `proxy`: nginx, haproxy or caddy.
  explicit Rig(const std::string& proxy, Setup setup = {});

  /// Sends a request on a new connection and returns the response.
  [[nodiscard]] gateway_test::Message Ask(const Client& client) const;
  /// Restarts tidegate, with all counts at zero.
  void StartTidegate();

  [[nodiscard]] gateway_test::ProxyProcess& tidegate() { return *tidegate_; }
  [[nodiscard]] gateway_test::RawUpstream& upstream() { return upstream_; }
  /// Returns the requests of clients that the upstream has received so far.
  [[nodiscard]] std::vector<gateway_test::Message> Passed() const;

 private:
  gateway_test::RawUpstream upstream_;
  const int api_;
  std::string config_;
  std::unique_ptr<gateway_test::ProxyProcess> tidegate_;
  std::unique_ptr<gateway_test::ProxyProcess> proxy_;
};

}  // namespace tidegate::proxies_test
