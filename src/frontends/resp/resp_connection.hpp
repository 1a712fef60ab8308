// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "decision/decision_call.hpp"
#include "frontends/access_policy.hpp"
#include "frontends/auth_failures.hpp"
#include "frontends/resp/resp_reply.hpp"
#include "frontends/resp/resp_words.hpp"
#include "frontends/resp/resp_writer.hpp"
#include "net/channel.hpp"
#include "net/deadlines.hpp"
#include "net/listener.hpp"
#include "net/resp_command.hpp"

namespace tidegate {

class RespFrontend;
class RespListener;

/// The connection of one client of the Redis protocol. Replies are sent in the order of the
/// commands. The decisions of a pipeline go to the store together, and their replies are sent in
/// one write. A command that changes something waits for the commands before it, and the commands
/// after it wait for its reply.
///
/// The connection owns itself and is deleted when it is closed. Calls that the store still has are
/// dropped then.
class RespConnection final : public net::Connection, public net::Deadlines::Node {
 public:
  RespConnection(RespListener& listener, net::Accepted accepted);
  ~RespConnection() override;

  void Start() override;
  void Drain() override;
  void Close() override;

  /// Called when the reply to one of its commands is ready. Replies that can be sent are written in
  /// the reactor's next round.
  void OnReplyReady();

 private:
  enum class State : std::uint8_t {
    kOpen,
    kEnding,   ///< Nothing more is read; commands in progress are still answered.
    kLingers,  ///< All replies are sent. Input is read and dropped, so that no reset loses them.
    kClosed,
  };

  void OnReady(std::uint32_t events) override;
  void OnDeadline(net::Deadlines::Kind kind) override;

  /// When replies are sent. In a round with input from several clients they are sent after all of
  /// the input has been read (kLater): the first reply wakes a client, which would then compete for
  /// the CPU while the others are still being read.
  enum class Answers : bool { kNow, kLater };
  void Advance(Answers answers);
  /// Returns false if nothing more can be read now.
  [[nodiscard]] bool Read();
  /// Executes the commands that have been read, as far as they may be started.
  void Process();
  void Execute(std::span<const std::string_view> arguments);
  /// Replies with an error and ends the connection.
  void Refuse(std::string_view problem);
  /// Answers a client that sent an HTTP request, and ends the connection.
  void RefuseHttp();
  void Settle();
  void Arm(net::Deadlines::Kind kind) noexcept;
  /// Writes the replies that are ready, up to the first that is not.
  void WriteReady();

  void Decide(const RespWordInfo& word, std::span<const std::string_view> arguments);
  /// Fills `call` from the arguments. Returns false if they are invalid; `problem` says why.
  [[nodiscard]] bool PrepareThrottle(DecisionCall& call,
                                     std::span<const std::string_view> arguments,
                                     std::string& problem);
  [[nodiscard]] bool PrepareQuestion(DecisionCall& call, const RespWordInfo& word,
                                     std::span<const std::string_view> arguments,
                                     std::string& problem);
  /// Adds the call to the end of the list of pending replies.
  void Append(DecisionCallPtr call) noexcept;
  /// Starts the prepared calls. A few commands are prepared before the first is started, so that
  /// the store can load their keys from memory in parallel.
  void StartPrepared();
  /// Drops all calls, because the client is gone.
  void DropCalls() noexcept;
  /// Replies with an error, after the pending replies.
  void ReplyError(std::string_view text);

  // resp_session.cpp: commands that concern only the connection.
  void ExecuteHere(const RespWordInfo& word, std::span<const std::string_view> arguments);
  void Auth(std::span<const std::string_view> arguments);
  void Hello(std::span<const std::string_view> arguments);
  void Client(std::span<const std::string_view> arguments);
  void Command(std::span<const std::string_view> arguments);
  void Config(std::span<const std::string_view> arguments);
  void Info();
  void ResetSession();
  /// Authenticates with `[name] token`. Returns an error, or an empty text if it succeeded. Ends
  /// the connection if the client's address has presented wrong tokens too often.
  /// REQUIRES: one or two arguments.
  [[nodiscard]] std::string LogIn(std::span<const std::string_view> arguments);
  /// Records that the client may not use `command`. Returns the time to wait if its address is
  /// beyond the limit of wrong tokens.
  std::optional<std::chrono::seconds> RecordFailure(AuthFailure::Reason reason,
                                                    std::string_view command,
                                                    std::string_view by = {});
  /// Determines the client's rights under the current snapshot.
  void CheckRights();
  /// Records that the client has no rights at all: it presented no token, or a certificate that is
  /// not in `access.certificates`.
  void RecordUnknown(std::string_view command);
  [[nodiscard]] std::size_t max_unsent() const noexcept;
  [[nodiscard]] RespWriter writer() { return {channel_.out(), version_}; }
  [[nodiscard]] RespFrontend& frontend() noexcept;

  RespListener& listener_;
  const net::Peer peer_;
  const std::uint64_t id_;
  net::Channel channel_;
  net::RespCommandParser parser_;
  State state_ = State::kOpen;
  bool draining_ = false;
  bool advancing_ = false;
  bool armed_ = false;
  net::Deadlines::Kind kind_ = net::Deadlines::Kind::kIdle;
  std::size_t progress_mark_ = 0;

  int version_ = 2;
  Rights rights_ = Rights::kNone;
  std::shared_ptr<const AccessControl> access_;  ///< By which rights_ was determined.
  std::string token_;  ///< The token that the client presented; empty: none.
  std::string name_;   ///< Set by CLIENT SETNAME.

  DecisionCall* first_ = nullptr;  ///< The call whose reply is sent next.
  DecisionCall* last_ = nullptr;
  std::size_t waiting_ = 0;           ///< Number of calls from first_ to last_.
  DecisionCall* prepared_ = nullptr;  ///< The first call that is not started.
  int unstarted_ = 0;                 ///< Number of calls that are not started.
  bool barrier_ = false;              ///< The last call changes something: no call may pass it.
  int turn_ = 0;                      ///< Commands executed since the last OnReady.
};

}  // namespace tidegate
