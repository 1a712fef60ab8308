// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decision/pipeline.hpp"
#include "frontends/access_policy.hpp"
#include "frontends/auth_failures.hpp"
#include "frontends/resp/resp_commands.hpp"
#include "net/channel.hpp"
#include "net/listener.hpp"
#include "net/resp_command.hpp"

namespace tidegate {

/// The Redis protocol on one reactor. Holds the state that the reactor's connections share.
class RespFrontend final : public DecisionListener {
 public:
  /// Pipeline, failures and budget must outlive the frontend; if `budget` is nullptr, buffers are
  /// not limited. `version` is the version of this program, for INFO and HELLO.
  RespFrontend(DecisionPipeline& pipeline, AuthFailures& failures, std::string version,
               net::BufferBudget* budget = nullptr)
      : pipeline_(pipeline), failures_(failures), version_(std::move(version)), buffers_(budget) {}

  [[nodiscard]] DecisionPipeline& pipeline() noexcept { return pipeline_; }
  [[nodiscard]] AuthFailures& failures() noexcept { return failures_; }
  [[nodiscard]] const std::string& version() const noexcept { return version_; }
  [[nodiscard]] net::BufferPool& buffers() noexcept { return buffers_; }

  /// Notifies the connection that the reply to a command is ready.
  void OnDecided(DecisionCall& call) noexcept override;

  /// Returns the quota for the numbers in a command. Quotas are cached, because most callers use a
  /// few of them again and again.
  [[nodiscard]] const Result<Quota>& QuotaOf(const QuotaSpec& spec);

  /// Returns a connection id that is unique in the process.
  [[nodiscard]] static std::uint64_t NextId() noexcept;

 private:
  struct CachedQuota {
    QuotaSpec spec;
    Result<Quota> quota = std::unexpected(Error{ErrorCode::kBadQuota, {}});
  };
  static constexpr std::size_t kCachedQuotas = 256;

  DecisionPipeline& pipeline_;
  AuthFailures& failures_;
  const std::string version_;
  net::BufferPool buffers_;
  std::vector<CachedQuota> quotas_{kCachedQuotas};
};

/// Accepts clients that speak the Redis protocol.
class RespListener final : public net::Listener {
 public:
  RespListener(net::Reactor& reactor, net::Descriptor socket, RespFrontend& frontend,
               const Options& options)
      : Listener(reactor, std::move(socket), options,
                 {.shed = "-ERR max number of clients reached\r\n",
                  .needs_tls = "-ERR this port requires TLS\r\n"}),
        frontend_(frontend) {}

  [[nodiscard]] RespFrontend& frontend() noexcept { return frontend_; }

 private:
  [[nodiscard]] net::Connection* NewConnection(net::Accepted accepted) override;
  RespFrontend& frontend_;
};

/// The connection of one client of the Redis protocol. Replies are sent in the order of the
/// commands. The decisions of a pipeline go to the store together, and its replies are sent in one
/// write. A command that changes something waits for the commands before it, and the commands after
/// it wait for its reply. When the connection is closed, its calls in the store are dropped.
class RespConnection final : public net::ServerConnection {
 public:
  using Arguments = std::span<const std::string_view>;

  RespConnection(RespListener& listener, net::Accepted accepted);
  ~RespConnection() override;

  void Start() override {
    ServerConnection::Start();
    ArmNext();
  }
  void Drain() override {
    draining_ = true;
    ArmNext();
  }

  /// Called when a reply is ready. The reply is written in the reactor's next round, if all replies
  /// before it are ready too.
  void OnReplyReady() {
    if (advancing_) return;  // Advance writes the replies when the store returns.
    listener_.reactor().Again(*this);
  }

 private:
  enum class State : std::uint8_t {
    kOpen,
    kEnding,  ///< No more input is read; commands in progress are still answered.
  };

  void OnReady(std::uint32_t events) override;
  void OnDeadline(Kind kind) override;
  [[nodiscard]] bool OnClosed() override {
    state_ = State::kEnding;
    DropCalls();
    return true;
  }

  /// The time at which replies are sent. kLater means after all input of the round has been read.
  /// It is for rounds with input from several clients: a client that a reply wakes would compete
  /// for the CPU during the reads.
  enum class Answers : bool { kNow, kLater };
  void Advance(Answers answers);
  /// Returns false if nothing more can be read now.
  [[nodiscard]] bool Read();
  /// Executes the commands that have been read, up to the first that must wait.
  void Process();
  /// Replies with an error and ends the connection.
  void Refuse(std::string_view problem);
  /// Answers a client that sent an HTTP request, and ends the connection.
  void RefuseHttp();
  /// Arms the deadline of the event that the connection waits for next, or ends the connection.
  void ArmNext();
  /// Writes the replies that are ready, up to the first that is not ready.
  void WriteReady();

  void Decide(const RespCommandInfo& command, Arguments arguments);
  /// Fills `call` from the arguments. Returns false if they are invalid; `problem` says why.
  [[nodiscard]] bool PrepareThrottle(DecisionCall& call, Arguments arguments, std::string& problem);
  [[nodiscard]] bool PrepareQuestion(DecisionCall& call, const RespCommandInfo& command,
                                     Arguments arguments, std::string& problem);
  /// Adds the call to the end of the list of pending replies.
  void Append(DecisionCallPtr call) noexcept {
    if (first_ == nullptr) {
      first_ = call.get();
    } else {
      last_->Attached<RespPending>().next = call.get();
    }
    last_ = call.release();
    ++waiting_;
  }
  /// Starts the prepared calls. Several at once, so that the store loads keys in parallel.
  void StartPrepared();
  /// Drops all calls, because the client is gone.
  void DropCalls() noexcept;
  /// Replies with an error, after the pending replies.
  void ReplyError(std::string_view text);

  // resp_session.cpp: commands that concern only the connection.
  void ExecuteHere(const RespCommandInfo& command, Arguments arguments);
  void Auth(Arguments arguments);
  void Hello(Arguments arguments);
  void Client(Arguments arguments);
  void Command(Arguments arguments);
  void Config(Arguments arguments);
  void Info();
  void ResetSession() {
    version_ = 2;
    token_.clear();
    name_.clear();
    CheckRights();
  }
  /// Authenticates with `[name] token`. Returns an error message, which is empty on success. Ends
  /// the connection if the client's address has presented wrong tokens too often. REQUIRES: one or
  /// two arguments.
  [[nodiscard]] std::string LogIn(Arguments arguments);
  /// Records that the client may not use `command`. Returns the time that the client must wait if
  /// its address is throttled.
  std::optional<std::chrono::seconds> RecordFailure(AuthFailure::Reason reason,
                                                    std::string_view command,
                                                    std::string_view by = {});
  /// Determines the client's rights under the current snapshot.
  void CheckRights();
  /// Records that the client has no rights at all: no token, or an unlisted certificate.
  void RecordUnknown(std::string_view command);
  [[nodiscard]] std::size_t max_unsent() const noexcept;
  [[nodiscard]] RespWriter writer() { return {channel_.out(), version_}; }
  [[nodiscard]] RespFrontend& frontend() noexcept { return listener_.frontend(); }

  RespListener& listener_;
  const std::uint64_t id_;
  net::RespCommandParser parser_;
  State state_ = State::kOpen;
  bool advancing_ = false;

  int version_ = 2;
  Rights rights_ = Rights::kNone;
  std::shared_ptr<const AccessControl> access_;  ///< The access control that determined rights_.
  std::string token_;  ///< The token that the client presented; empty: none.
  std::string name_;   ///< Set by CLIENT SETNAME.

  DecisionCall* first_ = nullptr;  ///< The call whose reply is sent next.
  DecisionCall* last_ = nullptr;
  std::size_t waiting_ = 0;           ///< Number of calls from first_ to last_.
  DecisionCall* prepared_ = nullptr;  ///< The first call that is not started.
  int unstarted_ = 0;                 ///< Number of calls that are not started.
  bool barrier_ = false;              ///< The last call changes something: later calls must wait.
  int turn_ = 0;                      ///< Commands executed since the last OnReady.
};

}  // namespace tidegate
