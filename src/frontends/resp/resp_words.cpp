// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/resp_words.hpp"

#include <array>

#include "rules/request_view.hpp"

namespace tidegate {
namespace {

using Word = RespWordInfo::Kind;

/// What is asked often stands first.
constexpr std::array<RespWordInfo, 23> kWords = {{
    {"cl.throttle", RespWord::kThrottle, -5, Word::kAsks, 1,
     "key max_burst count period_seconds [quantity]",
     "Limits a key by a quota of its own, as redis-cell does"},
    {"tg.decide", RespWord::kDecide, -3, Word::kAsks, 2,
     "rule identity [COST n] [WITH source value ...]", "Charges a rule, if that fits"},
    {"tg.peek", RespWord::kPeek, -3, Word::kAsks, 2,
     "rule identity [COST n] [WITH source value ...]", "What TG.DECIDE would answer"},
    {"tg.acquire", RespWord::kAcquire, -4, Word::kAsks, 2,
     "rule identity lease [COST n] [WITH source value ...]",
     "Takes a place of a concurrency rule, until it is released or its time is over"},
    {"tg.renew", RespWord::kRenew, -4, Word::kChanges, 2,
     "rule identity lease [WITH source value ...]", "Keeps a place for another period"},
    {"tg.release", RespWord::kRelease, -4, Word::kChanges, 2,
     "rule identity lease [WITH source value ...]", "Gives a place back"},
    {"tg.debit", RespWord::kDebit, -5, Word::kChanges, 2,
     "rule identity COST n [WITH source value ...]", "Charges afterwards, whether it fits or not"},
    {"tg.refund", RespWord::kRefund, -5, Word::kChanges, 2,
     "rule identity ID id [COST n] [AGE milliseconds] [WITH source value ...]",
     "Takes a charge back; the same id only once"},
    {"tg.reset", RespWord::kReset, -3, Word::kChanges, 2, "rule identity [WITH source value ...]",
     "Forgets what was charged"},
    {"ping", RespWord::kPing, -1, Word::kConnection, 0, "[message]", "Answers"},
    {"echo", RespWord::kEcho, 2, Word::kConnection, 0, "message", "Says it again"},
    {"hello", RespWord::kHello, -1, Word::kConnection, 0,
     "[version [AUTH name token] [SETNAME name]]", "Chooses the protocol's version"},
    {"auth", RespWord::kAuth, -2, Word::kConnection, 0, "[name] token", "Says who asks"},
    {"client", RespWord::kClient, -2, Word::kConnection, 0, "subcommand ...",
     "Names and tells the connection"},
    {"select", RespWord::kSelect, 2, Word::kConnection, 0, "0", "There is only database 0"},
    {"command", RespWord::kCommand, -1, Word::kConnection, 0, "[subcommand ...]",
     "Tells of the commands"},
    {"info", RespWord::kInfo, -1, Word::kConnection, 0, "[section ...]", "Tells of the server"},
    {"config", RespWord::kConfig, -2, Word::kConnection, 0, "GET pattern ...",
     "For programs that look for Redis's settings: there are none"},
    {"cluster", RespWord::kCluster, -2, Word::kConnection, 0, "subcommand ...",
     "For programs that look for a cluster: this is none"},
    {"role", RespWord::kRole, 1, Word::kConnection, 0, "", "For programs that look for a master"},
    {"time", RespWord::kTime, 1, Word::kConnection, 0, "", "The server's clock"},
    {"reset", RespWord::kResetConnection, 1, Word::kConnection, 0, "",
     "The connection as it was when it began"},
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
