// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "net/http_exchange.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// What operators and their machines ask: GET /healthz, /readyz and /metrics.
class AdminDoor final : public net::HttpHandler {
 public:
  struct Sources {
    std::function<std::string()> metrics;  ///< The Prometheus text.
    std::function<bool()> draining;        ///< On its way out: not ready any more.
  };
  /// The store must outlive the door.
  AdminDoor(AsyncStore& store, Sources sources);

  void Handle(net::HttpExchange& exchange) noexcept override;

 private:
  void AnswerReady(net::HttpExchange& exchange);

  AsyncStore& store_;
  bool was_ready_ = false;  ///< The store has answered before.
  const Sources sources_;
};

}  // namespace tidegate
