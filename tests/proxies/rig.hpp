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

/// What is exchanged for what in a recipe's file. Each must be there: a test that no longer changes
/// what it means to would listen on the port of another process.
using Changes = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] std::string Recipe(const std::string& file, const Changes& changes);

/// A client: where it comes from, and what it sends beside Host.
struct Client {
  std::string address = "127.0.0.2";
  std::string method = "GET";
  std::string target = "/api/x";
  std::string fields = {};
  std::string body = {};
  std::string host = "api.example.com";
};

/// How long the proxy waits for tidegate. On a busy machine a quarter of a second, as in the
/// recipes, is over before tidegate had its turn, and requests pass: only what is about that waits
/// so.
enum class Patience : std::uint8_t { kLong, kOfTheRecipe };

/// What is different from the recipes.
struct Setup {
  Changes tidegate = {};  ///< Of its configuration.
  std::string more = {};  ///< Further rules, and sections behind them.
  Changes proxy = {};
  Patience patience = Patience::kLong;
};

/// A proxy between its clients and an upstream, and a tidegate that it asks.
class Rig {
 public:
  /// `proxy`: nginx, haproxy or caddy.
  explicit Rig(const std::string& proxy, Setup setup = {});

  /// On a connection of its own.
  [[nodiscard]] gateway_test::Message Ask(const Client& client) const;
  /// Starts tidegate again, with nothing counted.
  void StartTidegate();

  [[nodiscard]] gateway_test::ProxyProcess& tidegate() { return *tidegate_; }
  [[nodiscard]] gateway_test::RawUpstream& upstream() { return upstream_; }
  /// What the upstream got from clients so far.
  [[nodiscard]] std::vector<gateway_test::Message> Passed() const;

 private:
  gateway_test::RawUpstream upstream_;
  const int api_;
  std::string config_;
  std::unique_ptr<gateway_test::ProxyProcess> tidegate_;
  std::unique_ptr<gateway_test::ProxyProcess> proxy_;
};

}  // namespace tidegate::proxies_test
