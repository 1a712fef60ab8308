// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "doors/admission.hpp"
#include "net/http_exchange.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// What operators and their machines ask: GET /healthz, /readyz and /metrics. The first two are
/// answered to everybody: probes have no secrets, and learn none.
class AdminDoor final : public net::HttpHandler {
 public:
  struct Sources {
    std::function<std::string()> metrics;  ///< The Prometheus text.
    std::function<bool()> draining;        ///< On its way out: not ready any more.
  };
  /// The store must outlive the door.
  AdminDoor(AsyncStore& store, const Admission& admission, std::shared_ptr<const Tokens> tokens,
            Sources sources);

  void Handle(net::HttpExchange& exchange) noexcept override;
  /// From now on.
  void Use(std::shared_ptr<const Tokens> tokens, const Admission& admission) {
    tokens_ = std::move(tokens);
    admission_ = admission;
  }

 private:
  void AnswerReady(net::HttpExchange& exchange);

  AsyncStore& store_;
  Admission admission_;
  std::shared_ptr<const Tokens> tokens_;
  bool was_ready_ = false;  ///< The store has answered before.
  const Sources sources_;
};

}  // namespace tidegate
