// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/resp_question.hpp"

#include "frontends/resp/throttle.hpp"
#include "rules/printable.hpp"
#include "rules/request_view.hpp"

namespace tidegate {
namespace {

bool HasLease(RespWord word) noexcept {
  return word == RespWord::kAcquire || word == RespWord::kRenew || word == RespWord::kRelease;
}

/// The options that a command takes besides WITH.
unsigned OptionsOf(RespWord word) noexcept {
  switch (word) {
    case RespWord::kDecide:
    case RespWord::kPeek:
    case RespWord::kAcquire:
    case RespWord::kDebit:
      return Question::kCost;
    case RespWord::kRefund:
      return Question::kCost | Question::kId | Question::kAge;
    default:
      return 0;
  }
}

/// True if the reply is a decision: an array, or a map with the option MAP.
bool IsDecision(RespWord word) noexcept {
  return word == RespWord::kDecide || word == RespWord::kPeek || word == RespWord::kAcquire ||
         word == RespWord::kDebit;
}

unsigned RequiredOf(RespWord word) noexcept {
  if (word == RespWord::kDebit) return Question::kCost;
  return word == RespWord::kRefund ? Question::kId : 0u;
}

std::string Takes(const RespWordInfo& word) {
  std::string name(word.name);
  for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return name + " takes: " + std::string(word.arguments);
}

}  // namespace

Call::Kind KindOf(RespWord word) noexcept {
  switch (word) {
    case RespWord::kPeek:
      return Call::Kind::kPeek;
    case RespWord::kDebit:
      return Call::Kind::kDebit;
    case RespWord::kRefund:
      return Call::Kind::kRefund;
    case RespWord::kReset:
      return Call::Kind::kReset;
    case RespWord::kRenew:
      return Call::Kind::kRenew;
    case RespWord::kRelease:
      return Call::Kind::kRelease;
    default:
      return Call::Kind::kApply;
  }
}

std::string ReadRespQuestion(const RespWordInfo& word, std::span<const std::string_view> arguments,
                             Question& question, RespPending::Form& form) {
  form = IsDecision(word.word) ? RespPending::Form::kDecision : RespPending::Form::kDone;
  std::size_t at = HasLease(word.word) ? 4 : 3;
  if (arguments.size() < at) return Takes(word);
  question.members = Question::kRule | Question::kIdentity;
  question.rule = arguments[1];
  if (HasLease(word.word)) {
    question.members |= Question::kLease;
    question.lease = arguments[3];
  }
  std::size_t named = 0;
  const unsigned options = OptionsOf(word.word);
  // With an empty identity all values are named: `TG.DECIDE rule "" WITH client_ip 192.0.2.1`.
  if (!arguments[2].empty()) question.identity.push_back({{}, arguments[2]});
  while (at < arguments.size()) {
    const std::string_view option = arguments[at];
    if (EqualsIgnoreCase(option, "with")) {
      if (at + 2 >= arguments.size()) return "WITH takes a source and its value";
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
    const unsigned member = EqualsIgnoreCase(option, "cost")  ? Question::kCost
                            : EqualsIgnoreCase(option, "id")  ? Question::kId
                            : EqualsIgnoreCase(option, "age") ? Question::kAge
                                                              : 0u;
    if ((member & options) == 0) {
      return "unknown option \"" + Printable(option) + "\": " + Takes(word);
    }
    if (question.Has(member)) return Printable(option) + " occurs twice";
    if (at + 1 >= arguments.size()) return Printable(option) + " needs a value";
    question.members |= member;
    const std::string_view value = arguments[at + 1];
    if (member == Question::kId) {
      question.id = value;
    } else if (!ReadInteger(value, member == Question::kCost ? question.cost : question.age_ms)) {
      return Printable(option) + " is not an integer";
    }
    at += 2;
  }
  if (question.identity.empty()) question.identity.push_back({{}, arguments[2]});
  if (const unsigned missing = RequiredOf(word.word) & ~question.members; missing != 0) {
    return Takes(word);
  }
  return {};
}

}  // namespace tidegate
