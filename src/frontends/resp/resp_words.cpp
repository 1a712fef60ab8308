// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/resp_words.hpp"

#include <array>

#include "rules/request_view.hpp"

namespace tidegate {
namespace {

using Word = RespWordInfo::Kind;

/// Frequent commands come first.
constexpr std::array<RespWordInfo, 23> kWords = {{
    {"cl.throttle", RespWord::kThrottle, -5, Word::kAsks, 1,
     "key max_burst count period_seconds [quantity]",
     "Limits a key by a quota of its own, as redis-cell does"},
    {"tg.decide", RespWord::kDecide, -3, Word::kAsks, 2,
     "rule identity [COST n] [WITH source value ...] [MAP]", "Charges a rule, if the cost fits"},
    {"tg.peek", RespWord::kPeek, -3, Word::kAsks, 2,
     "rule identity [COST n] [WITH source value ...] [MAP]",
     "Answers as TG.DECIDE, but charges nothing"},
    {"tg.acquire", RespWord::kAcquire, -4, Word::kAsks, 2,
     "rule identity lease [COST n] [WITH source value ...] [MAP]",
     "Acquires a lease of a concurrency rule, until it is released or expires"},
    {"tg.renew", RespWord::kRenew, -4, Word::kChanges, 2,
     "rule identity lease [WITH source value ...]", "Renews a lease for another period"},
    {"tg.release", RespWord::kRelease, -4, Word::kChanges, 2,
     "rule identity lease [WITH source value ...]", "Releases a lease"},
    {"tg.debit", RespWord::kDebit, -5, Word::kChanges, 2,
     "rule identity COST n [WITH source value ...] [MAP]",
     "Charges afterwards, even if it does not fit"},
    {"tg.refund", RespWord::kRefund, -5, Word::kChanges, 2,
     "rule identity ID id [COST n] [AGE milliseconds] [WITH source value ...]",
     "Returns a charge; the same id only once"},
    {"tg.reset", RespWord::kReset, -3, Word::kChanges, 2, "rule identity [WITH source value ...]",
     "Forgets all charges of the key"},
    {"ping", RespWord::kPing, -1, Word::kConnection, 0, "[message]", "Returns PONG or the message"},
    {"echo", RespWord::kEcho, 2, Word::kConnection, 0, "message", "Returns the message"},
    {"hello", RespWord::kHello, -1, Word::kConnection, 0,
     "[version [AUTH name token] [SETNAME name]]", "Selects the protocol version"},
    {"auth", RespWord::kAuth, -2, Word::kConnection, 0, "[name] token", "Authenticates the caller"},
    {"client", RespWord::kClient, -2, Word::kConnection, 0, "subcommand ...",
     "Names or describes the connection"},
    {"select", RespWord::kSelect, 2, Word::kConnection, 0, "0", "There is only database 0"},
    {"command", RespWord::kCommand, -1, Word::kConnection, 0, "[subcommand ...]",
     "Describes the commands"},
    {"info", RespWord::kInfo, -1, Word::kConnection, 0, "[section ...]", "Describes the server"},
    {"config", RespWord::kConfig, -2, Word::kConnection, 0, "GET pattern ...",
     "For programs that read settings of Redis: there are none"},
    {"cluster", RespWord::kCluster, -2, Word::kConnection, 0, "subcommand ...",
     "For programs that look for a cluster: this is none"},
    {"role", RespWord::kRole, 1, Word::kConnection, 0, "", "For programs that look for a master"},
    {"time", RespWord::kTime, 1, Word::kConnection, 0, "", "Returns the server's time"},
    {"reset", RespWord::kResetConnection, 1, Word::kConnection, 0, "",
     "Resets the connection to its initial state"},
    {"quit", RespWord::kQuit, -1, Word::kConnection, 0, "", "Ends the connection"},
}};

}  // namespace

std::span<const RespWordInfo> RespWords() noexcept { return kWords; }

const RespWordInfo* FindRespWord(std::string_view name) noexcept {
  for (const RespWordInfo& word : kWords) {
    if (name.size() == word.name.size() && EqualsIgnoreCase(name, word.name)) return &word;
  }
  return nullptr;
}

}  // namespace tidegate
