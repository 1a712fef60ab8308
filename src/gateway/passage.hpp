// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/intrusive/list_hook.hpp>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>

#include "decision/pipeline.hpp"
#include "gateway/client_stream.hpp"
#include "gateway/ejection.hpp"
#include "gateway/fields.hpp"
#include "gateway/upstream_pool.hpp"
#include "net/body_reader.hpp"
#include "net/http1_parser.hpp"
#include "net/http1_response.hpp"
#include "rules/request_view.hpp"

namespace tidegate {

class Gateway;
class Passage;
struct Route;

/// How a request through the gateway ended, for logs and metrics.
enum class PassageOutcome : std::uint8_t {
  kPassed,         ///< The client got the upstream's response.
  kLimited,        ///< Denied by a rule: 429.
  kDenied,         ///< Denied by an entry of `deny`: 403.
  kBanned,         ///< Denied by an operator: 403.
  kClosed,         ///< Denied by a failure policy: 503.
  kBadRequest,     ///< Invalid or too slow, and not (completely) forwarded: 400, 405, 408, 413.
  kNoRoute,        ///< No route matches: 404.
  kUnavailable,    ///< No target is up, or all are full: 503.
  kConnectFailed,  ///< No connection to the upstream: 502, or 504 after a timeout.
  kUpstreamError,  ///< The upstream reset the connection or did not send valid HTTP: 502.
  kTimeout,        ///< The upstream did not respond in time: 504.
  kCut,            ///< The upstream ended in the middle of its response.
  kClientGone,     ///< The client disconnected.
};
inline constexpr std::size_t kGatewayOutcomes = 13;
[[nodiscard]] std::string_view Name(PassageOutcome outcome) noexcept;

/// One request through the gateway: decides, routes, forwards and answers it. Owned by the gateway,
/// which reuses passages. From Begin to its end the passage's call keeps the snapshot that the
/// request began with.
class Passage final : public UpstreamConnection::User,
                      public net::Deadlines::Node,
                      private DecisionListener {
 public:
  explicit Passage(Gateway& gateway);
  ~Passage();
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

  [[nodiscard]] net::HttpHead& head() noexcept { return head_; }
  /// Begins a request. REQUIRES: head() has been read.
  void Begin(ClientStream& client);
  /// Called when the client's stream can be read or written.
  void OnClientReady();
  /// Called when the client is gone. Its stream is not used afterwards.
  void OnClientGone();

 private:
  friend class Gateway;

  enum class Phase : std::uint8_t {
    kFree,
    kDeciding,
    kConnecting,
    kSending,    ///< Sends the request to the upstream.
    kAwaiting,   ///< Waits for the head of the response.
    kAnswering,  ///< Forwards the response to the client.
    kTunnel,     ///< Forwards bytes in both directions after an upgrade.
    kOrphan,     ///< The client is gone, but the end of the response contains the cost.
  };
  enum class Pumped : std::uint8_t {
    kMore,  ///< Continue.
    kWait,  ///< Wait for the next event.
    kOver,  ///< The passage has ended or begun another attempt: do not use its state.
  };

  // passage.cpp: from the head to a decision, and the end.
  [[nodiscard]] bool Normalise(RequestView& view);
  [[nodiscard]] RequestFields::Policy FieldPolicy() const noexcept;
  [[nodiscard]] bool Prepare();
  void OnDecided(DecisionCall& call) noexcept override;
  void AnswerDenied();
  void AnswerGrpc(const Answer& answer, int status, PassageOutcome outcome);
  void AnswerProblem(int status, std::string_view detail, PassageOutcome outcome,
                     std::string_view lines = {});
  /// Begins an answer of the gateway's own; field lines may follow.
  [[nodiscard]] net::OutBuffer& BeginOwnHead(int status);
  /// The fields that the route adds to responses.
  [[nodiscard]] std::span<const HeaderEdits::Set> RouteHeaders() const noexcept;
  void WriteRouteHeaders(net::OutBuffer& out) const;
  /// Sends that answer and ends the request.
  void SendOwn(std::string_view body, PassageOutcome outcome);
  /// Whether the response has a Retry-After that does not come from a quota.
  enum class OtherRetryAfter : bool { kNo, kYes };
  void WriteRateLimit(net::OutBuffer& out, int status, const Config::Responses& responses,
                      OtherRetryAfter other = OtherRetryAfter::kNo);
  /// Returns the answer of the decision; an empty one before the decision, and if it failed.
  [[nodiscard]] Answer DecidedAnswer() const noexcept;
  /// The same, without the parts that the client must not see.
  [[nodiscard]] Answer ClientAnswer();
  void End(PassageOutcome outcome, ClientStream::Ending ending);
  void Log(PassageOutcome outcome);
  void KeepHead();
  [[nodiscard]] std::string_view Keep(std::string_view text);

  // passage_attempt, passage_request, passage_response: the upstream.
  void Attempt();
  void OnUpstreamUp() override;
  void OnUpstreamFailed(const std::string& problem) override;
  void OnUpstreamReady() override;
  void OnDeadline(net::Deadlines::Kind kind) override;
  void SendRequest();
  void Pump();
  [[nodiscard]] Pumped PumpRequest();
  [[nodiscard]] Pumped PumpResponse();
  /// Reads the rest of a response whose client is gone, for its cost. Limited in bytes and time.
  void PumpOrphan();
  void BeginOrphan();
  [[nodiscard]] bool ReadsOn() const noexcept;
  [[nodiscard]] Pumped LoseClient();
  [[nodiscard]] Pumped ReadResponseHead();
  [[nodiscard]] Pumped OnResponseHead();
  [[nodiscard]] Pumped RelayInterim();
  [[nodiscard]] Pumped SwitchProtocols();
  [[nodiscard]] bool SwitchesAsRequested() const noexcept;
  [[nodiscard]] Pumped EndTunnelFromUpstream();
  [[nodiscard]] Pumped AwaitTunnelEnd();
  [[nodiscard]] Pumped ReadResponseBody();
  [[nodiscard]] Pumped FillFromUpstream();
  void WriteChunk(net::Channel& channel, std::string_view data);
  void EndRequest(net::Channel& channel);
  [[nodiscard]] Pumped FinishResponse();
  [[nodiscard]] Pumped RefuseBody(const net::HttpRefusal& refusal);
  void WriteAnswer();
  void CountAnswer();
  /// Whether a failure counts against the target.
  enum class Blame : std::uint8_t { kTarget, kNobody };
  [[nodiscard]] Pumped FailAttempt(AttemptFailure failure, std::string_view problem,
                                   Blame blame = Blame::kTarget);
  void ReleaseUpstream(bool reusable);
  void Settle();
  [[nodiscard]] net::Deadlines::Kind KindOf(Micros duration) const noexcept;
  void Arm(net::Deadlines::Kind kind) noexcept;
  [[nodiscard]] std::uint64_t Moved() const noexcept;

  // passage_limits.cpp: costs that rules take from the response.
  void NoteCosts(std::span<const net::HttpField> fields);
  /// True if a rule takes its cost from the response and the response has not contained it yet.
  [[nodiscard]] bool OwesCost() const noexcept;
  void SettleCosts();
  void Settle(std::size_t charge, Call::Kind kind, std::int64_t cost);

  static constexpr std::size_t kArena = 4096;
  static constexpr std::size_t kMaxTried = 8;
  /// Buffers in a row before other connections get their turn.
  static constexpr int kMaxTurns = 16;

  Gateway& gateway_;
  ClientStream* client_ = nullptr;
  net::HttpHead head_;
  std::array<std::byte, kArena> arena_;
  std::pmr::monotonic_buffer_resource memory_{arena_.data(), arena_.size()};

  Phase phase_ = Phase::kFree;
  const Route* route_ = nullptr;
  RequestFields fields_;
  std::string_view method_, host_, path_;
  std::string_view upstream_path_;  ///< After the route's rewrite.
  std::string_view own_id_;         ///< Unique to this request; the id of its leases and refunds.
  std::string_view request_id_;     ///< own_id_, or the X-Request-Id of a trusted peer.
  std::string_view client_text_;    ///< The client's address, as rules and logs see it.
  std::string_view peer_text_;
  bool trusted_ = false;
  bool grpc_ = false;
  bool head_kept_ = false;  ///< The parts of the head that are needed later have been copied.

  DecisionCall* decision_ = nullptr;  ///< Set from Begin until the end.
  DecisionCall* leases_ = nullptr;    ///< Held by the gateway's LeaseKeeper; nullptr: none.
  std::span<std::int64_t> costs_;     ///< Costs from the response, by charge; -1: none yet.

  std::shared_ptr<UpstreamPool> pool_;
  std::shared_ptr<Member> member_;
  UpstreamConnection* upstream_ = nullptr;
  std::array<const Member*, kMaxTried> tried_{};
  int attempts_ = 0;
  std::string problem_;    ///< Why the last attempt failed.
  bool sent_any_ = false;  ///< This attempt has sent a part of the request.
  bool consumed_ = false;  ///< Part of the body has been consumed and cannot be sent again.
  bool request_done_ = false;
  bool request_broken_ = false;  ///< The upstream accepts no more; it may still have responded.
  bool answer_begun_ = false;
  bool upgrade_ = false;
  bool tunnel_ended_ = false;  ///< The upstream has ended its half of the tunnel.
  std::string_view protocol_;  ///< The protocol that the client wants to upgrade to.
  bool pumping_ = false;
  net::ResponseParser parser_;
  net::ResponseHead response_;
  net::BodyReader body_;
  int status_ = 0;
  net::Deadlines::Kind armed_{};
  Phase armed_phase_ = Phase::kFree;  ///< The phase of the deadline: two may wait equally long.
  std::uint64_t mark_ = 0;
  bool counted_ = false;  ///< Counted among the requests in progress of its member.
  int interims_ = 0;
  std::uint64_t upstream_begun_ = 0;  ///< Bytes that the connection had sent before this request.
  std::uint64_t body_bytes_ = 0;      ///< Bytes of the request's body so far.
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;

  net::Deadlines::Clock::time_point begun_{}, decided_{}, sent_at_{};
};

}  // namespace tidegate
