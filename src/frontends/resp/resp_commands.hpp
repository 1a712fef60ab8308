// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "decision/pipeline.hpp"
#include "frontends/question.hpp"
#include "net/buffers.hpp"
#include "store/call.hpp"
#include "tidegate/decision.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// The arguments of `CL.THROTTLE key max_burst count period [quantity]`, as in redis-cell.
struct Throttle {
  std::string_view key;
  QuotaSpec quota;            ///< The algorithm is gcra; the burst is max_burst + 1.
  std::int64_t quantity = 1;  ///< 0: a peek, which charges nothing.

  /// Returns true if the quantity never fits, and is larger than the cost that a store can charge.
  [[nodiscard]] bool IsTooLarge() const noexcept {
    return quantity > kMaxCost && quantity > quota.burst;
  }
};

/// Reads `arguments`, which begin with the command's name. If invalid, returns false and sets
/// `problem`.
[[nodiscard]] bool ReadThrottle(std::span<const std::string_view> arguments, Throttle& throttle,
                                std::string& problem);

/// Returns the quota of a CL.THROTTLE command. The quota is exact if it can be counted exactly.
/// Otherwise the time per unit is rounded down to a multiple of 1 ns, as redis-cell does, or of 10,
/// 100 or 1000 ns: the smallest of these steps with which the quota can be counted.
[[nodiscard]] Result<Quota> MakeThrottleQuota(const QuotaSpec& spec);

/// The reply to CL.THROTTLE: 0, or 1 if limited; the limit; the remaining units; the seconds until
/// a retry would pass (-1: the command passed, or no retry will); the seconds until the quota is
/// full.
using ThrottleAnswer = std::array<std::int64_t, 5>;
[[nodiscard]] ThrottleAnswer AnswerThrottle(const Decision& decision, const Quota& quota,
                                            std::int64_t quantity);

/// Returns seconds as redis-cell does: cuts to whole milliseconds, then rounds these up to seconds.
[[nodiscard]] constexpr std::int64_t CellSeconds(Micros duration) noexcept {
  const std::int64_t millis = duration.count() / 1000;
  return millis / 1000 + (millis % 1000 != 0 ? 1 : 0);
}

/// Parses an optional `-` and digits. Returns false for anything else, and on overflow.
[[nodiscard]] bool ReadInteger(std::string_view text, std::int64_t& number) noexcept;

/// Writes replies of the Redis protocol, version 2 or 3. Version 2 gets types that it lacks in the
/// form that Redis sends: a map, for example, as an array.
class RespWriter {
 public:
  RespWriter(net::OutBuffer& out, int version) : out_(out), version_(version) {}

  /// REQUIRES: `text` has no line breaks.
  void Simple(std::string_view text) { out_ << '+' << text << "\r\n"; }
  /// Writes an error such as `ERR message`. Line breaks would end the error, so they become blanks.
  void Error(std::string_view text) {
    out_ << '-';
    for (const char c : text) out_ << (c == '\r' || c == '\n' ? ' ' : c);
    out_ << "\r\n";
  }
  void Integer(std::int64_t number) {
    char* const to = out_.Reserve(24);
    char* end = to;
    *end++ = ':';
    if (number >= 0 && number <= 9) {
      *end++ = static_cast<char>('0' + number);
    } else {
      end = std::to_chars(end, to + 24, number).ptr;
    }
    *end++ = '\r';
    *end++ = '\n';
    out_.Advance(static_cast<std::size_t>(end - to));
  }
  void Text(std::string_view text) { out_ << '$' << text.size() << "\r\n" << text << "\r\n"; }
  /// Writes a key of a map with its value.
  void Pair(std::string_view key, std::string_view value) {
    Text(key);
    Text(value);
  }
  void Pair(std::string_view key, std::int64_t value) {
    Text(key);
    Integer(value);
  }
  /// Writes a text for people to read: a verbatim string in version 3, a bulk string in version 2.
  void Verbatim(std::string_view text) {
    if (version_ < 3) return Text(text);
    out_ << '=' << text.size() + 4 << "\r\ntxt:" << text << "\r\n";
  }
  void Null() { out_ << (version_ < 3 ? "$-1\r\n" : "_\r\n"); }
  void Array(std::size_t elements) { out_ << '*' << elements << "\r\n"; }
  void Set(std::size_t elements) { out_ << (version_ < 3 ? '*' : '~') << elements << "\r\n"; }
  /// Begins a map; its `pairs` pairs must be written next.
  void Map(std::size_t pairs) {
    if (version_ < 3) return Array(pairs * 2);
    out_ << '%' << pairs << "\r\n";
  }

 private:
  net::OutBuffer& out_;
  const int version_;
};

class RespConnection;

/// A command whose reply is pending, in the list of its connection. Attached to its call.
struct RespPending {
  enum class Form : std::uint8_t {
    kThrottle,  ///< The five integers of redis-cell.
    kDecision,  ///< Numbers, times in milliseconds, the decider and the reason.
    kMap,       ///< The same values with names, as in the JSON answer.
    kDone,      ///< 1 if the operation changed something, otherwise 0.
    kError,     ///< The text of `error`; the command was not executed.
  };

  RespConnection* connection = nullptr;
  DecisionCall* next = nullptr;  ///< The call of the next command.
  Form form = Form::kDecision;
  bool ready = false;         ///< The reply can be written.
  std::int64_t quantity = 1;  ///< The quantity of CL.THROTTLE.
  std::string_view error;     ///< Lives in the call's memory.
};

/// Writes the reply to the command of `call`. REQUIRES: the reply is ready.
void WriteReply(RespWriter& writer, DecisionCall& call);

/// A command of the RESP frontend.
struct RespCommandInfo {
  enum class Id : std::uint8_t {
    kThrottle,  ///< CL.THROTTLE.
    kRule,      ///< Any TG command, which names a rule; `call` is its operation.
    // The commands below concern only the connection.
    kAuth,
    kClient,
    kCluster,
    kCommand,
    kConfig,
    kEcho,
    kHello,
    kInfo,
    kPing,
    kQuit,
    kReset,
    kRole,
    kSelect,
    kTime,
  };
  enum class Kind : std::uint8_t {
    kDecision,    ///< Any number of these commands may be in progress at once.
    kChange,      ///< Runs alone, so that later commands see its effect.
    kConnection,  ///< Concerns only the connection.
  };

  std::string_view name;  ///< The name in lower case.
  Id id;
  /// The arity as in COMMAND: the number of arguments, including the name; if it is negative, minus
  /// the least number of arguments.
  int arity;
  Kind kind;
  int key;  ///< The position of the key among the arguments; 0: there is none.
  std::string_view arguments;
  std::string_view summary;
  // Used by TG commands only; `required` and `options` are bits of Question::Member.
  Call::Kind call = Call::Kind::kApply;
  unsigned required = 0;  ///< The required members; kLease is the third argument.
  unsigned options = 0;   ///< The optional members; WITH is always allowed.
};

[[nodiscard]] std::span<const RespCommandInfo> RespCommands() noexcept;
/// Returns the command with this name, ignoring case, or nullptr if there is none.
[[nodiscard]] const RespCommandInfo* FindRespCommand(std::string_view name) noexcept;

/// Reads the arguments of a TG command, which begin with its name, into `question` as views, and
/// the form of its reply into `form`. Returns an error message, or an empty text if they are valid.
[[nodiscard]] std::string ReadRespQuestion(const RespCommandInfo& command,
                                           std::span<const std::string_view> arguments,
                                           Question& question, RespPending::Form& form);

}  // namespace tidegate
