// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string_view>

#include "gateway/client_stream.hpp"
#include "gateway/fields.hpp"
#include "gateway/quota_accounting.hpp"
#include "gateway/upstream_attempt.hpp"
#include "gateway/upstream_pool.hpp"
#include "identity/request_view.hpp"
#include "net/http1_parser.hpp"

namespace tidegate {

class Gateway;
struct Route;

/// The ways in which a request through the gateway can end, for logs and metrics.
enum class ExchangeOutcome : std::uint8_t {
  kPassed,         ///< The client got the upstream's response.
  kLimited,        ///< Denied by a rule: 429.
  kDenied,         ///< Denied by an entry of `deny`: 403.
  kBanned,         ///< Denied by an operator: 403.
  kClosed,         ///< Denied by a failure policy: 503.
  kBadRequest,     ///< Invalid or slow request, not forwarded completely: 400, 405, 408, 413.
  kNoRoute,        ///< No route matches: 404.
  kUnavailable,    ///< No target is up, or all are full: 503.
  kConnectFailed,  ///< No connection to the upstream: 502, or 504 after a timeout.
  kUpstreamError,  ///< The upstream reset the connection or did not send valid HTTP: 502.
  kTimeout,        ///< The upstream did not respond in time: 504.
  kCut,            ///< The connection to the upstream ended in the middle of the response.
  kClientGone,     ///< The client disconnected.
};
inline constexpr std::size_t kExchangeOutcomes = 13;
inline constexpr std::array<std::string_view, kExchangeOutcomes> kExchangeOutcomeNames = {
    "passed",      "limited",  "denied",      "banned",         "closed",
    "bad_request", "no_route", "unavailable", "connect_failed", "upstream_error",
    "timeout",     "cut",      "client_gone"};

/// One request through the gateway: decides, routes, forwards and answers it.
///
/// Connects the ClientStream, the QuotaAccounting, and one UpstreamAttempt after another.
/// Nothing is read from one side until the other has accepted the bytes read before, so a slow
/// reader slows the writer down, in fixed memory.
///
/// Owned by the gateway, which reuses exchanges. Keeps the snapshot that the request began with.
class ProxiedExchange final : private UpstreamConnection::User,
                              private net::Deadlines::Node,
                              private DecisionListener {
 public:
  explicit ProxiedExchange(Gateway& gateway);

  [[nodiscard]] net::HttpHead& head() noexcept { return head_; }
  /// Begins a request. REQUIRES: head() has been read.
  void Begin(ClientStream& client);
  /// Called when the client's stream can be read or written.
  void OnClientReady() {
    if (phase_ != Phase::kDeciding && phase_ != Phase::kConnecting) Pump();
  }
  /// Called when the client is gone. Its stream is not used afterwards.
  void OnClientGone();

 private:
  enum class Phase : std::uint8_t {
    kFree,
    kDeciding,
    kConnecting,
    kSending,       ///< Sends the request to the upstream.
    kAwaiting,      ///< Waits for the head of the response.
    kResponding,    ///< Forwards the response to the client.
    kTunnel,        ///< Forwards bytes in both directions after an upgrade.
    kTunnelEnding,  ///< The upstream has ended its half of the tunnel.
    kDraining,      ///< The client is gone, but the end of the response contains the cost.
  };
  /// Tells whether the request is still in memory.
  enum class Request : std::uint8_t {
    kWhole,      ///< Head and body are in memory: the request can be sent again.
    kStreaming,  ///< The body may have overwritten the head: only `text_` is valid.
  };
  enum class Step : std::uint8_t {
    kMore,  ///< Continue.
    kWait,  ///< Wait for the next event.
    kOver,  ///< The exchange has ended or has started another attempt: do not use its state.
  };
  /// Texts that outlive the head: views into the client's buffer, and later into `memory_`.
  struct Text {
    std::string_view method = {}, host = {}, path = {};
    std::string_view upstream_path = {};  ///< After the route's rewrite.
    std::string_view request_id = {};     ///< A new unique id, or the id that a trusted peer sent.
    std::string_view client = {};         ///< The client's address, as rules and logs see it.
    std::string_view peer = {};           ///< The address that connected.
    std::string_view protocol = {};       ///< The protocol to upgrade to; empty: none.
  };
  /// The deadline that is armed.
  struct Wait {
    net::Deadlines::Kind kind{};
    Phase phase = Phase::kFree;  ///< The phase that waits; two phases may wait equally long.
    std::uint64_t mark = 0;      ///< The value of Moved() when the deadline was armed.
  };

  // From the head to the decision, and the end.
  [[nodiscard]] bool Prepare();
  [[nodiscard]] bool Normalise(RequestView& view);
  [[nodiscard]] bool FindRoute(RequestView& view);
  [[nodiscard]] RequestFields::Policy FieldPolicy() const noexcept;
  void OnDecided(DecisionCall& call) noexcept override;
  void Attempt(net::Deadlines::Clock::time_point now);
  void FailAttempt();
  [[nodiscard]] Step Fail(AttemptFailure failure, std::string_view problem,
                          UpstreamAttempt::Blame blame = UpstreamAttempt::Blame::kTarget);
  void SendRequest();
  void CopyText() noexcept;
  void CountBytes(const ClientStream& client) noexcept {
    bytes_in_ = client.received();
    bytes_out_ = client.sent();
  }
  void End(ExchangeOutcome outcome, ClientStream::Ending ending);

  // exchange_responses.cpp: responses of the gateway itself, and the access log.
  void AnswerDenied();
  void AnswerGrpc(const Answer& answer, int status, ExchangeOutcome outcome);
  void AnswerProblem(int status, std::string_view detail, ExchangeOutcome outcome,
                     std::string_view lines = {});
  /// Rejects a request before the decision. Returns false, the result of the functions above.
  [[nodiscard]] bool Reject(int status, std::string_view detail, std::string_view lines = {}) {
    AnswerProblem(status, detail, ExchangeOutcome::kBadRequest, lines);
    return false;
  }
  [[nodiscard]] net::OutBuffer& BeginOwnHead(int status);
  void SendOwn(std::string_view body, ExchangeOutcome outcome);
  [[nodiscard]] std::span<const HeaderEdits::Set> RouteHeaders() const noexcept;
  void WriteRouteHeaders(net::OutBuffer& out) const;
  enum class OtherRetryAfter : bool { kNo, kYes };
  void WriteRateLimit(net::OutBuffer& out, int status, OtherRetryAfter other);
  void WriteResponseHead();
  void Log(ExchangeOutcome outcome);

  // exchange_relay.cpp: forwarding in both directions, and deadlines.
  void OnUpstreamUp() override { SendRequest(); }
  void OnUpstreamFailed(const std::string& problem) override {
    attempt_.LoseConnection(problem);
    FailAttempt();
  }
  void OnUpstreamReady() override { Pump(); }
  void Pump();
  [[nodiscard]] Step PumpRequest();
  [[nodiscard]] Step ForwardBody();
  void EndRequest();
  [[nodiscard]] Step RefuseBody(const net::HttpRefusal& refusal);
  [[nodiscard]] Step PumpResponse();
  /// Called when the upstream has sent no more for now. Flushes the client's output, because the
  /// next bytes may come late.
  [[nodiscard]] Step AwaitUpstream() {
    if (attempt_.broken()) {
      return Fail(AttemptFailure::kReset, "connection broken before the response");
    }
    return client_->Flush() ? Step::kWait : LoseClient();
  }
  [[nodiscard]] Step ForwardHead();
  [[nodiscard]] Step ForwardInterim();
  [[nodiscard]] Step BeginResponse();
  [[nodiscard]] Step ForwardResponseBody();
  [[nodiscard]] Step FinishResponse();
  [[nodiscard]] Step LoseClient();
  [[nodiscard]] Step SwitchProtocols();
  [[nodiscard]] Step EndTunnel();
  /// Called after the upstream has ended its half: finishes if the client has ended too, or if the
  /// upstream accepts no more bytes. Otherwise the client may still send; the idle timeout limits
  /// how long.
  [[nodiscard]] Step AwaitTunnelEnd() {
    const bool client_ended = attempt_.sent() && !attempt_.blocked();
    return client_ended || attempt_.broken() || attempt_.reset() ? FinishResponse() : Step::kWait;
  }
  /// Returns true if the cost is still to come in the trailers: a client that disconnects just
  /// before them must not avoid the cost.
  [[nodiscard]] bool OwesCost() const noexcept {
    return phase_ == Phase::kResponding && attempt_.head().body == net::BodyFraming::kChunked &&
           quotas_.OwesCost();
  }
  void BeginDraining() {
    phase_ = Phase::kDraining;
    pumping_ = false;
    body_bytes_ = 0;
  }
  void Drain();
  [[nodiscard]] bool tunnels() const noexcept {
    return phase_ == Phase::kTunnel || phase_ == Phase::kTunnelEnding;
  }
  void ArmNext();
  void Arm(net::Deadlines::Kind kind) noexcept;
  [[nodiscard]] std::uint64_t Moved() const noexcept {
    if (client_ == nullptr) return attempt_.received();
    return attempt_.received() + attempt_.sent_bytes() + client_->received() + client_->sent();
  }
  void OnDeadline(net::Deadlines::Kind kind) override;

  static constexpr std::size_t kArena = 4096;

  Gateway& gateway_;
  ClientStream* client_ = nullptr;  ///< nullptr: the client is gone.
  net::HttpHead head_;
  std::array<std::byte, kArena> arena_;
  std::pmr::monotonic_buffer_resource memory_{arena_.data(), arena_.size()};
  Phase phase_ = Phase::kFree;
  Request request_ = Request::kWhole;
  const Route* route_ = nullptr;
  RequestFields fields_;
  Text text_;
  bool trusted_ = false;  ///< The peer is a trusted proxy.
  bool pumping_ = false;  ///< Pump is running; it does not call itself.
  QuotaAccounting quotas_;
  UpstreamAttempt attempt_;
  TriedTargets tried_;
  Wait wait_;
  int status_ = 0;  ///< The status of the response; 0: none yet.
  /// Bytes of the request's body; while draining, of the response's.
  std::uint64_t body_bytes_ = 0;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
  net::Deadlines::Clock::time_point begun_{}, decided_{};
};

}  // namespace tidegate
