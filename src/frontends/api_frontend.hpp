// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "decision/pipeline.hpp"
#include "frontends/auth_failures.hpp"
#include "frontends/question.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

/// The HTTP API of one reactor: POST /v1/decide and the endpoints like it, /v1/auth for proxies,
/// GET /openapi.json. Translates requests to DecisionCalls and their answers to responses. Drops a
/// call whose client disconnects before the answer.
class ApiFrontend final : public net::HttpHandler, private DecisionListener {
 public:
  /// Pipeline and failures must outlive the frontend.
  ApiFrontend(DecisionPipeline& pipeline, AuthFailures& failures)
      : pipeline_(pipeline), failures_(failures) {}

  /// Sets the port of the listener, for the check of Host at /v1/auth. REQUIRES: the listener has
  /// not started.
  void SetPort(std::uint16_t port) noexcept { port_ = port; }

  void Handle(net::HttpExchange& exchange) noexcept override;
  /// Rejects a caller without the rights that the endpoint needs, before the body is read.
  [[nodiscard]] std::optional<std::size_t> OnHead(net::HttpExchange& exchange) noexcept override;
  /// Returns the paths of all endpoints. The OpenAPI document must describe every one of them.
  [[nodiscard]] static std::vector<std::string_view> Paths();

 private:
  struct Endpoint;
  struct Batch;
  /// The data that the frontend attaches to each call.
  struct Pending {
    net::HttpExchange* exchange = nullptr;
    Batch* batch = nullptr;     ///< nullptr: the call is not part of a batch.
    bool forward_auth = false;  ///< The answer is for a proxy.
    bool names_rule = false;    ///< The caller named the deciding rule.
    int deny_status = 0;        ///< The status that the proxy wants for denials; 0: the usual one.
  };

  void OnDecided(DecisionCall& call) noexcept override;

  /// Starts a single call. The call is dropped if the client disconnects before the answer.
  void StartFor(DecisionCall& call, const Pending& pending) {
    call.Attach<Pending>(pending);
    pending.exchange->OnAbort(
        [](void* dropped) noexcept { static_cast<DecisionCall*>(dropped)->Drop(); }, &call);
    call.Start(this);
  }
  void Decide(net::HttpExchange& exchange, const Endpoint& endpoint);
  void DecideBatch(net::HttpExchange& exchange, const Endpoint& endpoint);
  /// Handles `/v1/auth`, with any method: a proxy asks whether its client's request may pass.
  void ForwardAuth(net::HttpExchange& exchange);
  /// Returns true if the caller may use `/v1/auth`. If not, the exchange has been answered.
  [[nodiscard]] bool MayForwardAuth(net::HttpExchange& exchange);
  /// Returns true if the request may come from a web page instead of a proxy.
  [[nodiscard]] bool MayBePage(const net::HttpExchange& exchange,
                               const AccessControl& access) const;
  [[nodiscard]] static std::span<const Endpoint> Endpoints() noexcept;
  [[nodiscard]] static const Endpoint* FindEndpoint(std::string_view path) noexcept;
  /// Fills `call` with the charges of `question` for the operation of `endpoint`.
  [[nodiscard]] static std::optional<Objection> Prepare(const Question& question,
                                                        const Endpoint& endpoint,
                                                        DecisionCall& call,
                                                        std::pmr::memory_resource& scratch);
  /// Fills `batch` with a call for each question of the body.
  [[nodiscard]] std::optional<Objection> PrepareBatch(Batch& batch, const Endpoint& endpoint);
  /// Returns true if the caller may use the endpoint. If not, the exchange has been answered.
  [[nodiscard]] bool MayUse(net::HttpExchange& exchange, const Endpoint& endpoint);
  /// Returns true if the body may name hidden rules: `api.hidden_rules` is set, or the caller named
  /// the rule and therefore knows that it exists.
  [[nodiscard]] static bool ShowsHiddenRules(DecisionCall& call) noexcept {
    return call.Attached<Pending>().names_rule || call.snapshot().api.hidden_rules;
  }
  void Answer(DecisionCall& call, net::HttpExchange& exchange);
  void AnswerAuth(DecisionCall& call, net::HttpExchange& exchange, int deny_status);
  void AnswerBatch(Batch& batch);

  DecisionPipeline& pipeline_;
  AuthFailures& failures_;
  std::uint16_t port_ = 0;
  net::OutBuffer body_;
};

/// The OpenAPI document that the API serves.
[[nodiscard]] std::string_view OpenApiJson() noexcept;

}  // namespace tidegate
