// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "admin/admin_call.hpp"
#include "frontends/auth_failures.hpp"

namespace tidegate {

/// The operations API: /healthz, /readyz, /openapi.json, /metrics, and the admin API under /v1. The
/// first three need no authentication: probes have no credentials, and the answers are not secret.
///
/// A web page may use the API only if it was loaded from this port by its address. Requests from
/// pages of other origins are rejected by their Origin or Sec-Fetch-Site field, and those from
/// pages whose host name was made to resolve to this machine (DNS rebinding) by their Host field.
class AdminFrontend final : public net::HttpHandler, private DecisionListener {
 public:
  struct Sources {
    std::function<std::string()> metrics;  ///< Returns the Prometheus text.
    std::function<bool()> draining;        ///< Returns true if the server is shutting down.
    /// Returns true if the store has answered a call of any reactor since the start.
    std::function<bool()> store_answered;
    // The next three functions return JSON.
    std::function<std::string()> status;
    std::function<std::string()> rules;
    std::function<std::string(std::size_t most)> hot;
  };
  /// `context` and `failures` must outlive the frontend.
  AdminFrontend(AdminContext& context, AuthFailures& failures, Sources sources);

  void Handle(net::HttpExchange& exchange) noexcept override;
  /// Rejects a caller without the rights that the endpoint needs before its body is read.
  [[nodiscard]] std::optional<std::size_t> OnHead(net::HttpExchange& exchange) noexcept override;
  /// Returns every path that has an endpoint. The OpenAPI document must describe all of them.
  [[nodiscard]] static std::vector<std::string_view> Paths();

 private:
  struct Endpoint;

  void Answer(net::HttpExchange& exchange, const Endpoint& endpoint);
  void AnswerReady(net::HttpExchange& exchange);
  void AnswerDocument(net::HttpExchange& exchange);
  void AnswerMetrics(net::HttpExchange& exchange);
  template <std::function<std::string()> Sources::*report>
  void AnswerReport(net::HttpExchange& exchange) {
    AnswerJson(exchange, (sources_.*report)());
  }
  void AnswerHot(net::HttpExchange& exchange);
  void AnswerOverrides(net::HttpExchange& exchange);
  void AnswerAudit(net::HttpExchange& exchange);
  void Post(net::HttpExchange& exchange, const Endpoint& endpoint);
  /// Returns true if the caller may use the endpoint. If not, the exchange has been answered.
  [[nodiscard]] bool MayUse(net::HttpExchange& exchange, const Endpoint& endpoint);

  /// Answers a readiness request when the store has answered `probe`.
  void OnDecided(DecisionCall& probe) noexcept override;
  [[nodiscard]] const AccessControl& access() const noexcept { return *context_.snapshot().access; }

  AdminContext& context_;
  AuthFailures& failures_;
  const Quota probe_quota_;
  const Sources sources_;
};

/// The OpenAPI document that the admin port serves.
[[nodiscard]] std::string_view AdminOpenApiJson() noexcept;

}  // namespace tidegate
