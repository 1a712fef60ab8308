// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "decision/decision_call.hpp"
#include "frontends/access_policy.hpp"
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

/// One client that speaks the Redis protocol. Commands are answered in their order. Decisions of a
/// pipeline go to the store together, and their replies leave in one write. A command that changes
/// something waits for those before it, and those behind it wait for its reply.
///
/// It owns itself and is deleted when it is closed. Calls that are still with the store are
/// dropped.
class RespConnection final : public net::Connection, public net::Deadlines::Node {
 public:
  RespConnection(RespListener& listener, net::Accepted accepted);
  ~RespConnection() override;

  void Start() override;
  void Drain() override;
  void Close() override;

  /// The reply to one of its commands is ready: what can be sent leaves in the reactor's next
  /// round.
  void OnReplyReady();

 private:
  enum class State : std::uint8_t {
    kOpen,
    kEnding,   ///< Nothing more is read; what is under way is answered.
    kLingers,  ///< All is said: what still comes is dropped, so that what was said arrives.
    kClosed,
  };

  void OnReady(std::uint32_t events) override;
  void OnDeadline(net::Deadlines::Kind kind) override;

  /// In a round in which several clients have asked, answers leave when all of them have been read:
  /// the first that leaves wakes its reader, who would else work against us for each of the others.
  enum class Answers : bool { kNow, kLater };
  void Advance(Answers answers);
  /// False: nothing more can be read now.
  [[nodiscard]] bool Read();
  /// The commands that are there, as far as they may be begun.
  void Process();
  void Execute(std::span<const std::string_view> arguments);
  /// The connection ends with it.
  void Refuse(std::string_view problem);
  /// Somebody speaks HTTP.
  void RefuseHttp();
  void Settle();
  void Arm(net::Deadlines::Kind kind) noexcept;
  /// Writes what is answered, up to the first that is not.
  void WriteReady();

  void Decide(const RespWordInfo& word, std::span<const std::string_view> arguments);
  /// False: `problem` says what is wrong.
  [[nodiscard]] bool PrepareThrottle(DecisionCall& call,
                                     std::span<const std::string_view> arguments,
                                     std::string& problem);
  [[nodiscard]] bool PrepareQuestion(DecisionCall& call, const RespWordInfo& word,
                                     std::span<const std::string_view> arguments,
                                     std::string& problem);
  /// Adds the call behind those that are answered before it.
  void Append(DecisionCall& call) noexcept;
  /// Starts the calls that are prepared. Commands are read first, a few at a time, so that what the
  /// store needs for them is loaded from far memory side by side.
  void StartPrepared();
  /// Drops all calls: the client is gone.
  void DropCalls() noexcept;
  /// Replies with an error, behind the replies that are pending.
  void ReplyError(std::string_view text);

  // resp_session.cpp: what concerns the connection alone.
  void ExecuteHere(const RespWordInfo& word, std::span<const std::string_view> arguments);
  void Auth(std::span<const std::string_view> arguments);
  void Hello(std::span<const std::string_view> arguments);
  void Client(std::span<const std::string_view> arguments);
  void Command(std::span<const std::string_view> arguments);
  void Config(std::span<const std::string_view> arguments);
  void Info();
  void ResetSession();
  /// A text: the error. REQUIRES: one or two.
  [[nodiscard]] std::string_view LogIn(std::span<const std::string_view> arguments);
  /// Again whenever other tokens are in force.
  void CheckRights();
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
  SnapshotRef snapshot_;  ///< The one whose tokens gave the rights.
  std::string token_;     ///< That the client presented; empty: none.
  std::string name_;      ///< By CLIENT SETNAME.

  DecisionCall* first_ = nullptr;  ///< Whose reply is sent next.
  DecisionCall* last_ = nullptr;
  std::size_t waiting_ = 0;           ///< Calls from first_ to last_.
  DecisionCall* prepared_ = nullptr;  ///< The first of them that is not started.
  int unstarted_ = 0;                 ///< How many are not started.
  bool barrier_ = false;              ///< The last call changes something: nothing may overtake it.
  int turn_ = 0;                      ///< Commands since the reactor called.
};

}  // namespace tidegate
