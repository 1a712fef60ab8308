// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontends/admission.hpp"
#include "frontends/answer.hpp"
#include "frontends/override_desk.hpp"
#include "frontends/policy.hpp"
#include "frontends/question.hpp"
#include "frontends/refusals.hpp"
#include "frontends/resolve.hpp"
#include "net/http_exchange.hpp"
#include "rules/rule_set.hpp"
#include "telemetry/tally.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// The HTTP API: POST /v1/decide and its relatives, /v1/auth for proxies, GET /openapi.json. One
/// per reactor.
class ApiFrontend final : public net::HttpHandler {
 public:
  /// Store, tally, overrides and refusals must outlive the door.
  ApiFrontend(AsyncStore& store, Tally& tally, const OverrideDesk& overrides,
              const Admission& admission, Refusals& refusals,
              const std::shared_ptr<const Policy>& policy);
  ~ApiFrontend() override;

  void Handle(net::HttpExchange& exchange) noexcept override;
  /// For all requests from now on; those under way keep what they began with.
  void Use(const std::shared_ptr<const Policy>& policy);
  void Use(const std::shared_ptr<const Policy>& policy, const Admission& admission) {
    admission_ = admission;
    Use(policy);
  }
  /// Every path that is answered here: what the OpenAPI document must describe, all of it.
  [[nodiscard]] static std::vector<std::string_view> Paths();

 private:
  struct Endpoint;
  struct Asked;
  struct Batch;

  void Ask(net::HttpExchange& exchange, const Endpoint& endpoint);
  void AskBatch(net::HttpExchange& exchange, const Endpoint& endpoint);
  /// `/v1/auth`: a proxy asks about its client's request, whatever its method.
  void Auth(net::HttpExchange& exchange);
  void FinishAuth(Asked& asked);
  [[nodiscard]] static std::span<const Endpoint> Endpoints() noexcept;
  /// Fills `batch` with all questions of the body, or says what is wrong with one of them.
  [[nodiscard]] std::optional<Objection> PrepareBatch(Batch& batch, const Endpoint& endpoint);
  [[nodiscard]] static const Endpoint* FindEndpoint(std::string_view path) noexcept;
  [[nodiscard]] bool MayAsk(net::HttpExchange& exchange, const Endpoint& endpoint);
  void Start(Asked& asked);
  void Finish(Asked& asked);
  void FinishBatch(Batch& batch);
  void Count(Asked& asked);
  [[nodiscard]] Micros Jitter() noexcept;

  AsyncStore& store_;
  Tally& tally_;
  const OverrideDesk& overrides_;
  Admission admission_;
  Refusals& refusals_;
  std::shared_ptr<const Policy> policy_;
  net::OutBuffer body_;
  std::uint64_t random_;
};

/// The OpenAPI document that the door serves.
[[nodiscard]] std::string_view OpenApiJson() noexcept;

}  // namespace tidegate
