// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admin/admin_desk.hpp"
#include "frontends/admission.hpp"
#include "frontends/refusals.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

/// What operators and their machines ask: /healthz, /readyz, /openapi.json, /metrics, and the admin
/// API under /v1. The first three are answered to everybody: probes have no secrets, and learn
/// none; the document is the same everywhere.
///
/// Web pages have no way into the API but one that was read from this very port by its address: a
/// foreign one's requests are refused by their Origin, and one whose name was made to lead here by
/// its Host.
class AdminDoor final : public net::HttpHandler {
 public:
  struct Sources {
    std::function<std::string()> metrics;  ///< The Prometheus text.
    std::function<bool()> draining;        ///< On its way out: not ready any more.
    // JSON.
    std::function<std::string()> status;
    std::function<std::string()> rules;
    std::function<std::string(std::size_t most)> hot;
  };
  /// The desk and the refusals must outlive the door.
  AdminDoor(AdminDesk& desk, const Admission& admission, Refusals& refusals, Sources sources);

  void Handle(net::HttpExchange& exchange) noexcept override;
  /// From now on.
  void Use(std::shared_ptr<const Policy> policy, const Admission& admission) {
    desk_.policy = std::move(policy);
    admission_ = admission;
  }
  /// Every path that is answered here: what the OpenAPI document must describe, all of it.
  [[nodiscard]] static std::vector<std::string_view> Paths();

 private:
  struct Endpoint;

  void Answer(net::HttpExchange& exchange, const Endpoint& endpoint);
  void AnswerReady(net::HttpExchange& exchange);
  void AnswerDocument(net::HttpExchange& exchange);
  void AnswerMetrics(net::HttpExchange& exchange);
  void AnswerStatus(net::HttpExchange& exchange);
  void AnswerRules(net::HttpExchange& exchange);
  void AnswerHot(net::HttpExchange& exchange);
  void AnswerOverrides(net::HttpExchange& exchange);
  void AnswerAudit(net::HttpExchange& exchange);
  void Post(net::HttpExchange& exchange, const Endpoint& endpoint);
  /// False: it has been answered.
  [[nodiscard]] bool MayCome(net::HttpExchange& exchange, const Endpoint& endpoint);

  AdminDesk& desk_;
  Admission admission_;
  Refusals& refusals_;
  bool was_ready_ = false;  ///< The store has answered before.
  const Sources sources_;
};

/// The OpenAPI document that the door serves.
[[nodiscard]] std::string_view AdminOpenApiJson() noexcept;

}  // namespace tidegate
