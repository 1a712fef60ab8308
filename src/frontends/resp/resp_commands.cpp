// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/resp_commands.hpp"

#include <array>
#include <chrono>
#include <limits>
#include <numeric>

#include "base/ascii.hpp"
#include "base/message_text.hpp"
#include "base/units.hpp"
#include "decision/answer.hpp"

namespace tidegate {

namespace {

using Id = RespCommandInfo::Id;
using Kind = RespCommandInfo::Kind;
constexpr unsigned kCost = Question::kCost;
constexpr unsigned kLease = Question::kLease;
constexpr unsigned kRefundOptions = Question::kCost | Question::kId | Question::kAge;

/// All commands. Frequent commands come first, because the search is linear.
constexpr std::array<RespCommandInfo, 23> kCommands = {{
    {"cl.throttle", Id::kThrottle, -5, Kind::kDecision, 1,
     "key max_burst count period_seconds [quantity]",
     "Charges a key under the quota in the arguments, as redis-cell does"},
    {"tg.decide", Id::kRule, -3, Kind::kDecision, 2,
     "rule identity [COST n] [WITH source value ...] [MAP]", "Charges a rule if the cost fits",
     Call::Kind::kApply, 0, kCost},
    {"tg.peek", Id::kRule, -3, Kind::kDecision, 2,
     "rule identity [COST n] [WITH source value ...] [MAP]",
     "Decides like TG.DECIDE, but charges nothing", Call::Kind::kPeek, 0, kCost},
    {"tg.acquire", Id::kRule, -4, Kind::kDecision, 2,
     "rule identity lease [COST n] [WITH source value ...] [MAP]",
     "Acquires a lease of a concurrency rule; the lease ends when it is released or expires",
     Call::Kind::kApply, kLease, kCost},
    {"tg.renew", Id::kRule, -4, Kind::kChange, 2, "rule identity lease [WITH source value ...]",
     "Renews a lease for another period", Call::Kind::kRenew, kLease},
    {"tg.release", Id::kRule, -4, Kind::kChange, 2, "rule identity lease [WITH source value ...]",
     "Releases a lease", Call::Kind::kRelease, kLease},
    {"tg.debit", Id::kRule, -5, Kind::kChange, 2,
     "rule identity COST n [WITH source value ...] [MAP]",
     "Charges a rule after the fact, even if the cost does not fit", Call::Kind::kDebit, kCost,
     kCost},
    {"tg.refund", Id::kRule, -5, Kind::kChange, 2,
     "rule identity ID id [COST n] [AGE milliseconds] [WITH source value ...]",
     "Gives units back to a rule, once for each id", Call::Kind::kRefund, Question::kId,
     kRefundOptions},
    {"tg.reset", Id::kRule, -3, Kind::kChange, 2, "rule identity [WITH source value ...]",
     "Forgets all charges of the key", Call::Kind::kReset},
    {"ping", Id::kPing, -1, Kind::kConnection, 0, "[message]", "Returns PONG or the message"},
    {"echo", Id::kEcho, 2, Kind::kConnection, 0, "message", "Returns the message"},
    {"hello", Id::kHello, -1, Kind::kConnection, 0, "[version [AUTH name token] [SETNAME name]]",
     "Selects the protocol version"},
    {"auth", Id::kAuth, -2, Kind::kConnection, 0, "[name] token", "Authenticates the caller"},
    {"client", Id::kClient, -2, Kind::kConnection, 0, "subcommand ...",
     "Names or describes the connection"},
    {"select", Id::kSelect, 2, Kind::kConnection, 0, "0", "Selects a database: only 0 exists"},
    {"command", Id::kCommand, -1, Kind::kConnection, 0, "[subcommand ...]",
     "Describes the commands"},
    {"info", Id::kInfo, -1, Kind::kConnection, 0, "[section ...]", "Describes the server"},
    {"config", Id::kConfig, -2, Kind::kConnection, 0, "GET pattern ...",
     "Returns the Redis settings save and appendonly, which say that nothing is saved"},
    {"cluster", Id::kCluster, -2, Kind::kConnection, 0, "subcommand ...",
     "Returns an error: Tidegate is not a Redis Cluster"},
    {"role", Id::kRole, 1, Kind::kConnection, 0, "",
     "Returns master, as a Redis without replicas does"},
    {"time", Id::kTime, 1, Kind::kConnection, 0, "", "Returns the server's time"},
    {"reset", Id::kReset, 1, Kind::kConnection, 0, "",
     "Resets the connection to its initial state"},
    {"quit", Id::kQuit, -1, Kind::kConnection, 0, "", "Ends the connection"},
}};

std::string Usage(const RespCommandInfo& command) {
  return Uppered(command.name) + " takes: " + std::string(command.arguments);
}

using std::chrono::ceil;
using std::chrono::milliseconds;

std::int64_t Millis(Micros duration) noexcept { return ceil<milliseconds>(duration).count(); }

/// Writes the seven elements of a decision, the same in both versions of the protocol. `limit`,
/// `remaining` and the time until the quota is full are -1 if nothing was counted.
void WriteNumbers(RespWriter& writer, const Decision& decision, bool allowed) {
  const bool counted = IsCounted(decision);
  writer.Array(7);
  writer.Integer(allowed ? 0 : 1);
  writer.Integer(counted ? decision.limit : -1);
  writer.Integer(counted ? decision.remaining : -1);
  writer.Integer(allowed || decision.never ? -1 : Millis(decision.retry_after));
  writer.Integer(counted ? Millis(decision.reset_after) : -1);
  writer.Text(Name(decision.decided_by));
  writer.Text(Name(decision.reason));
}

/// Writes the members of the JSON answer, with 1 and 0 because version 2 has no booleans.
void WriteMap(RespWriter& writer, const Decision& decision, bool allowed) {
  const bool counted = IsCounted(decision);
  const bool waits = !allowed && !decision.never;
  const bool never = !allowed && decision.never && counted;  // False for a ban without an end.
  writer.Map(4u + (counted ? 3u : 0u) + (waits || never ? 1u : 0u));
  writer.Pair("allowed", allowed ? 1 : 0);
  writer.Pair("rule", decision.rule);
  if (counted) {
    writer.Pair("limit", decision.limit);
    writer.Pair("remaining", decision.remaining);
  }
  if (waits) {
    writer.Pair("retry_after_ms", Millis(decision.retry_after));
  } else if (never) {
    writer.Pair("never", 1);
  }
  if (counted) writer.Pair("reset_after_ms", Millis(decision.reset_after));
  writer.Pair("decided_by", Name(decision.decided_by));
  writer.Pair("reason", Name(decision.reason));
}

/// The longest time that Quota::Make allows: 2^51 us, which is 71 years.
constexpr std::int64_t kMaxMicros = std::int64_t{1} << 51;
constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();

struct Range {
  std::string_view name;
  std::int64_t least;
  std::int64_t most;
};
constexpr Range kBurst{"max_burst", 0, kMaxMicros - 1};
constexpr Range kCount{"count", 1, kMaxInteger};
constexpr Range kPeriod{"period", 1, kMaxMicros / 1'000'000};
constexpr Range kQuantity{"quantity", 0, kMaxInteger};

bool ReadIn(const Range& range, std::string_view text, std::int64_t& number, std::string& problem) {
  bool read = ReadInteger(text, number);
  // redis-cell also accepts the sign `+`.
  if (!read && text.size() > 1 && text[0] == '+' && text[1] != '-') {
    read = ReadInteger(text.substr(1), number);
  }
  if (read && number >= range.least && number <= range.most) return true;
  problem = std::string(range.name) + " must be an integer between " + std::to_string(range.least) +
            " and " + std::to_string(range.most);
  return false;
}

}  // namespace

std::span<const RespCommandInfo> RespCommands() noexcept { return kCommands; }

const RespCommandInfo* FindRespCommand(std::string_view name) noexcept {
  for (const RespCommandInfo& command : kCommands) {
    if (name.size() == command.name.size() && EqualsIgnoreCase(name, command.name)) return &command;
  }
  return nullptr;
}

std::string ReadRespQuestion(const RespCommandInfo& command,
                             std::span<const std::string_view> arguments, Question& question,
                             RespPending::Form& form) {
  const bool decides = command.call == Call::Kind::kApply || command.call == Call::Kind::kPeek ||
                       command.call == Call::Kind::kDebit;
  form = decides ? RespPending::Form::kDecision : RespPending::Form::kDone;
  const bool has_lease = (command.required & kLease) != 0;
  std::size_t at = has_lease ? 4 : 3;
  if (arguments.size() < at) return Usage(command);
  question.members = Question::kRule | Question::kIdentity;
  question.rule = arguments[1];
  if (has_lease) {
    question.members |= kLease;
    question.lease = arguments[3];
  }
  std::size_t named = 0;
  // If the identity is empty, WITH gives each value and its source: `TG.DECIDE rule "" WITH
  // client_ip 192.0.2.1`.
  if (!arguments[2].empty()) question.identity.push_back({{}, arguments[2]});
  while (at < arguments.size()) {
    const std::string_view option = arguments[at];
    if (EqualsIgnoreCase(option, "with")) {
      if (at + 2 >= arguments.size()) return "WITH needs a source and its value";
      if (++named > 16) return "too many WITH: at most 16 are allowed";
      question.identity.push_back({arguments[at + 1], arguments[at + 2]});
      if (arguments[at + 1].empty()) return "the source after WITH is empty";
      at += 3;
      continue;
    }
    if (form == RespPending::Form::kDecision && EqualsIgnoreCase(option, "map")) {
      form = RespPending::Form::kMap;
      ++at;
      continue;
    }
    const unsigned member = EqualsIgnoreCase(option, "cost")  ? kCost
                            : EqualsIgnoreCase(option, "id")  ? Question::kId
                            : EqualsIgnoreCase(option, "age") ? Question::kAge
                                                              : 0u;
    if ((member & command.options) == 0) {
      return "unknown option \"" + Printable(option) + "\": " + Usage(command);
    }
    if (question.Has(member)) return Printable(option) + " occurs twice";
    if (at + 1 >= arguments.size()) return Printable(option) + " needs a value";
    question.members |= member;
    const std::string_view value = arguments[at + 1];
    if (member == Question::kId) {
      question.id = value;
    } else if (!ReadInteger(value, member == kCost ? question.cost : question.age_ms)) {
      return Printable(option) + " is not an integer";
    }
    at += 2;
  }
  if (question.identity.empty()) question.identity.push_back({{}, arguments[2]});
  return (command.required & ~question.members) != 0 ? Usage(command) : std::string();
}

void WriteReply(RespWriter& writer, DecisionCall& call) {
  const RespPending& pending = call.Attached<RespPending>();
  if (pending.form == RespPending::Form::kError) return writer.Error(pending.error);
  if (call.error) return writer.Error("ERR " + call.error->message);
  if (pending.form == RespPending::Form::kThrottle) {
    writer.Array(5);
    for (const std::int64_t number :
         AnswerThrottle(call.decisions.front(), *call.inline_quota, pending.quantity)) {
      writer.Integer(number);
    }
    return;
  }
  const Answer answer = call.answer();
  // A command names one rule, whose decision governs.
  const Decision& decision = *answer.governing;
  if (pending.form == RespPending::Form::kDone) {
    if (decision.decided_by == DecidedBy::kClosed) {
      return writer.Error(
          "UNAVAILABLE the store did not answer, and the rule has `on_failure: closed`: try again");
    }
    return writer.Integer(call.applied == Applied::kYes ? 1 : 0);
  }
  const bool map = pending.form == RespPending::Form::kMap;
  (map ? WriteMap : WriteNumbers)(writer, decision, answer.allowed);
}

bool ReadInteger(std::string_view text, std::int64_t& number) noexcept {
  if (text.size() - 1 < 9 && text[0] != '-') {  // One to nine digits: the common case.
    std::int64_t value = 0;
    for (const char c : text) {
      const auto digit = static_cast<unsigned char>(c - '0');
      if (digit > 9) return false;
      value = value * 10 + digit;
    }
    number = value;
    return true;
  }
  const auto read = ParseNumber<std::int64_t>(text);
  if (read) number = *read;
  return read.has_value();
}

bool ReadThrottle(std::span<const std::string_view> arguments, Throttle& throttle,
                  std::string& problem) {
  if (arguments.size() != 5 && arguments.size() != 6) {
    problem = "CL.THROTTLE needs: key max_burst count period_seconds [quantity]";
    return false;
  }
  throttle.key = arguments[1];
  std::int64_t burst = 0;
  std::int64_t period = 0;
  QuotaSpec& quota = throttle.quota;
  if (!ReadIn(kBurst, arguments[2], burst, problem) ||
      !ReadIn(kCount, arguments[3], quota.limit, problem) ||
      !ReadIn(kPeriod, arguments[4], period, problem) ||
      (arguments.size() == 6 && !ReadIn(kQuantity, arguments[5], throttle.quantity, problem))) {
    return false;
  }
  if (throttle.quantity > kMaxCost && throttle.quantity <= burst + 1) {
    problem = "quantity " + std::to_string(throttle.quantity) + " is too large: at most " +
              std::to_string(kMaxCost) + " units can be charged at once";
    return false;
  }
  quota.algorithm = Algorithm::kGcra;
  quota.origin = QuotaOrigin::kCaller;
  quota.burst = burst + 1;
  quota.period = std::chrono::seconds{period};
  return true;
}

Result<Quota> MakeThrottleQuota(const QuotaSpec& spec) {
  Result<Quota> exact = Quota::Make(spec);
  if (exact || spec.limit < 1) return exact;
  const std::int64_t nanos = spec.period.count() * 1000 / spec.limit;
  for (const std::int64_t step : {1, 10, 100, 1000}) {
    const std::int64_t rounded = nanos - nanos % step;
    if (rounded == 0) break;
    // 1000 units per `rounded` us are one unit per `rounded` ns.
    const std::int64_t common = std::gcd(rounded, std::int64_t{1000});
    QuotaSpec other = spec;
    other.limit = 1000 / common;
    other.period = Micros{rounded / common};
    if (Result<Quota> quota = Quota::Make(other)) return quota;
  }
  return exact;
}

ThrottleAnswer AnswerThrottle(const Decision& decision, const Quota& quota, std::int64_t quantity) {
  const bool counted = IsCounted(decision);
  const std::int64_t remaining = counted ? decision.remaining : 0;
  const std::int64_t reset = counted ? CellSeconds(decision.reset_after) : 0;
  bool allowed = decision.allowed;
  bool never = decision.never;
  Micros retry = decision.retry_after;
  if (quantity > kMaxCost && counted) {
    // The store received only a peek, because the quantity never fits (Throttle::IsTooLarge).
    allowed = false;
    never = true;
  } else if (quantity == 0 && counted) {
    // A quantity of 0 always fits, unless the key is in debt.
    allowed = decision.reset_after <= quota.recovery();
    retry = decision.reset_after - quota.recovery();
  }
  const std::int64_t wait = allowed || never ? -1 : CellSeconds(retry);
  return {allowed ? 0 : 1, quota.capacity(), remaining, wait, reset};
}

}  // namespace tidegate
