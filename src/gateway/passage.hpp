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
#include "gateway/upstream_pool.hpp"
#include "net/body_reader.hpp"
#include "net/http1_parser.hpp"
#include "net/http1_response.hpp"
#include "rules/request_view.hpp"

namespace tidegate {

class Gateway;
class Passage;
struct Route;

/// How a request's way through the gateway ended, for logs and metrics.
enum class PassageOutcome : std::uint8_t {
  kPassed,         ///< The upstream's answer was given.
  kLimited,        ///< 429.
  kDenied,         ///< An entry of `deny`: 403.
  kBanned,         ///< An operator: 403.
  kClosed,         ///< A failure policy: 503.
  kBadRequest,     ///< 400, 405, 408, 413: not passed on, or not to its end.
  kNoRoute,        ///< 404.
  kUnavailable,    ///< No target is up, or all are full: 503.
  kConnectFailed,  ///< 502, or 504 where it took too long.
  kUpstreamError,  ///< Reset, or no HTTP: 502.
  kTimeout,        ///< 504.
  kCut,            ///< The upstream broke off in the middle of its answer.
  kClientGone,
};
inline constexpr std::size_t kGatewayOutcomes = 13;
[[nodiscard]] std::string_view Name(PassageOutcome outcome) noexcept;

/// One request on its way through the gateway: it is decided, routed, forwarded and answered. It
/// belongs to the gateway, which reuses it; between Begin and its end its call holds the
/// configuration that it began with.
class Passage final : public UpstreamConnection::User,
                      public net::Deadlines::Node,
                      private DecisionListener {
 public:
  explicit Passage(Gateway& gateway);
  ~Passage();
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

  [[nodiscard]] net::HttpHead& head() noexcept { return head_; }
  /// The head is there.
  void Begin(ClientStream& client);
  /// Something can be read from the client, or written to it.
  void OnClientReady();
  /// The client is gone; its stream must not be touched any more.
  void OnClientGone();

 private:
  friend class Gateway;

  enum class Phase : std::uint8_t {
    kFree,
    kDeciding,
    kConnecting,
    kSending,   ///< The request.
    kAwaiting,  ///< The head of the answer.
    kAnswering,
    kTunnel,
    kOrphan,  ///< The client is gone, but the end of the response tells what the request cost.
  };
  enum class Pumped : std::uint8_t {
    kMore,  ///< Go on.
    kWait,
    kOver,  ///< The passage has ended, or begun anew: touch nothing.
  };

  // passage.cpp: from the head to a decision, and the end.
  [[nodiscard]] bool Normalise(RequestView& view);
  [[nodiscard]] bool Prepare();
  void OnDecided(DecisionCall& call) noexcept override;
  void AnswerDenied(const Answer& answer, int status);
  void AnswerGrpc(const Answer& answer, int status);
  void AnswerProblem(int status, std::string_view detail, PassageOutcome outcome,
                     std::string_view lines = {});
  void WriteRateLimit(net::OutBuffer& out, int status, const Config::Responses& responses);
  /// The answer of the decision; an empty one before it, and if it failed.
  [[nodiscard]] Answer DecidedAnswer() const noexcept;
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
  /// Reads the rest of an answer for nobody; a little of it, and not for long.
  void PumpOrphan();
  void BeginOrphan();
  [[nodiscard]] bool ReadsOn() const noexcept;
  [[nodiscard]] Pumped LoseClient();
  [[nodiscard]] Pumped ReadResponseHead();
  [[nodiscard]] Pumped OnResponseHead();
  [[nodiscard]] Pumped RelayInterim();
  [[nodiscard]] Pumped SwitchProtocols();
  [[nodiscard]] Pumped ReadResponseBody();
  [[nodiscard]] Pumped FillFromUpstream();
  void WriteChunk(net::Channel& channel, std::string_view data);
  void EndRequest(net::Channel& channel);
  [[nodiscard]] Pumped FinishResponse();
  [[nodiscard]] Pumped RefuseBody(const net::HttpRefusal& refusal);
  void WriteAnswer();
  void CountAnswer();
  /// Who a failure is counted against.
  enum class Blame : std::uint8_t { kTarget, kNobody };
  [[nodiscard]] Pumped FailAttempt(AttemptFailure failure, std::string_view problem,
                                   Blame blame = Blame::kTarget);
  void ReleaseUpstream(bool reusable);
  void Settle();
  [[nodiscard]] net::Deadlines::Kind KindOf(Micros duration) const noexcept;
  void Arm(net::Deadlines::Kind kind) noexcept;
  [[nodiscard]] std::uint64_t Moved() const noexcept;

  // passage_limits.cpp: costs that only the response tells.
  void NoteCosts(std::span<const net::HttpField> fields);
  /// Whether a rule waits for the response to tell its cost, and it has not yet.
  [[nodiscard]] bool OwesCost() const noexcept;
  void SettleCosts();
  void Settle(std::size_t charge, Call::Kind kind, std::int64_t cost);

  static constexpr std::size_t kArena = 4096;
  static constexpr std::size_t kMaxTried = 8;
  /// So many buffers in a row, then the others have their turn.
  static constexpr int kMaxTurns = 16;

  Gateway& gateway_;
  ClientStream* client_ = nullptr;
  net::HttpHead head_;
  std::array<std::byte, kArena> arena_;
  std::pmr::monotonic_buffer_resource memory_{arena_.data(), arena_.size()};

  Phase phase_ = Phase::kFree;
  const Route* route_ = nullptr;
  std::string_view method_, host_, path_;
  std::string_view own_id_;       ///< Nobody else's: of leases and refunds.
  std::string_view request_id_;   ///< The same, or what a trusted peer called it.
  std::string_view client_text_;  ///< The client's address, as rules and logs see it.
  std::string_view peer_text_;
  bool trusted_ = false;
  bool grpc_ = false;
  bool head_kept_ = false;  ///< What of the head is needed later has been copied.

  DecisionCall* decision_ = nullptr;  ///< From Begin until the end.
  DecisionCall* leases_ = nullptr;    ///< Held by the gateway's LeaseKeeper.
  std::span<std::int64_t> costs_;     ///< By charge: what the response said; -1: nothing yet.

  std::shared_ptr<UpstreamPool> pool_;
  std::shared_ptr<Member> member_;
  UpstreamConnection* upstream_ = nullptr;
  std::array<const Member*, kMaxTried> tried_{};
  int attempts_ = 0;
  std::string problem_;    ///< Of the last attempt.
  bool sent_any_ = false;  ///< Of the request, on this attempt.
  bool consumed_ = false;  ///< Some of the body cannot be sent again.
  bool request_done_ = false;
  bool request_broken_ = false;  ///< The upstream takes no more; it may have answered.
  bool answer_begun_ = false;
  bool upgrade_ = false;
  bool pumping_ = false;
  net::ResponseParser parser_;
  net::ResponseHead response_;
  net::BodyReader body_;
  int status_ = 0;
  net::Deadlines::Kind armed_{};
  Phase armed_phase_ = Phase::kFree;  ///< Two phases may wait equally long.
  std::uint64_t mark_ = 0;
  bool counted_ = false;  ///< Among the requests that its member has under way.
  int interims_ = 0;
  std::uint64_t upstream_begun_ = 0;  ///< Bytes that its connection had sent before.
  std::uint64_t body_bytes_ = 0;      ///< Of the request, so far.
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;

  net::Deadlines::Clock::time_point begun_{}, decided_{}, sent_at_{};
};

}  // namespace tidegate
