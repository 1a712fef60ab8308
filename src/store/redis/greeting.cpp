// SPDX-License-Identifier: Apache-2.0
#include "store/redis/greeting.hpp"

#include <array>
#include <charconv>

namespace tidegate::redis {

void AppendSize(std::string& out, char kind, std::size_t size) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size).ptr;
  out.push_back(kind);
  out.append(digits.data(), end);
  out.append("\r\n");
}

void AppendWord(std::string& out, std::string_view word) {
  AppendSize(out, '$', word.size());
  out.append(word);
  out.append("\r\n");
}

void Greeting::Begin(std::string& out) {
  steps_.clear();
  at_ = 0;
  subscribed_ = false;
  const auto send = [&](Step step, std::initializer_list<std::string_view> words) {
    AppendCommand(out, words);
    steps_.push_back(step);
  };
  if (options_.user.empty() && options_.password.empty()) {
    send(Step::kHello, {"HELLO", "3", "SETNAME", options_.name});
  } else {
    const std::string_view user =
        options_.user.empty() ? "default" : std::string_view(options_.user);
    send(Step::kHello, {"HELLO", "3", "AUTH", user, options_.password, "SETNAME", options_.name});
  }
  if (options_.master_only) send(Step::kRole, {"ROLE"});
  if (options_.database != 0) send(Step::kSelect, {"SELECT", std::to_string(options_.database)});
  send(Step::kSubscribe, {"SUBSCRIBE", options_.channel});
  if (!options_.also.empty()) send(Step::kAlso, {"SUBSCRIBE", options_.also});
  if (!options_.script.empty()) send(Step::kLoad, {"SCRIPT", "LOAD", options_.script});
}

Greeting::Progress Greeting::Fail(Step step, std::string_view error) {
  kind_ = KindOf(error);
  // Redis quotes arguments that it does not understand, and HELLO contains the password.
  if (step == Step::kHello) error = error.substr(0, error.find_first_of(",'`"));
  const std::string what(options_.what);
  const std::string where(options_.where_password);
  switch (kind_) {
    case ErrorKind::kNoAuth:
      problem_ = what + " requires a password: write it into " + where;
      break;
    case ErrorKind::kWrongPass:
      problem_ = what + " rejected the user or the password of " + where;
      break;
    case ErrorKind::kNoPerm:
      problem_ = "the user of " + what + " lacks a permission that Tidegate needs";
      break;
    case ErrorKind::kLoading: problem_ = what + " is still loading its data"; break;
    default:
      problem_ = step == Step::kHello
                     ? what + " does not support RESP3: Tidegate requires Redis 6.2 or later"
                 : step == Step::kSelect ? "Redis rejected the database of store.url"
                                         : "Redis rejected the script";
  }
  problem_ += " (reply: `" + std::string(error.substr(0, 200)) + "`)";
  return Progress::kFailed;
}

Greeting::Progress Greeting::OnReply(const Reply& reply) {
  if (at_ >= steps_.size()) return Progress::kReady;
  const Step step = steps_[at_];
  const bool push = reply.is(Reply::Type::kPush);
  const std::string_view first = reply.elements.empty() ? "" : reply.elements.front().text;
  if (step == Step::kSubscribe) {
    subscribed_ = push;
    if (!subscribed_ && KindOf(reply.text) != ErrorKind::kNoPerm) return Fail(step, reply.text);
  } else if (step == Step::kAlso) {
    // Continue even if the subscription is refused. A message of the first channel may come before.
    if (push && first != "subscribe") return Progress::kMore;
  } else if (push) {
    return Progress::kMore;  // A message of a channel, not a reply.
  } else if (reply.is(Reply::Type::kError)) {
    return Fail(step, reply.text);
  } else if (step == Step::kRole) {
    if (first != "master") {
      kind_ = ErrorKind::kReadOnly;
      problem_ = "the sentinels report a Redis that is not the master (no longer, or not yet)";
      return Progress::kFailed;
    }
  } else if (step == Step::kLoad) {
    if (!reply.is(Reply::Type::kText) || reply.text.size() != 40) {
      return Fail(step, "a value that is not the script's SHA-1");
    }
    sha_ = reply.text;
  }
  return ++at_ == steps_.size() ? Progress::kReady : Progress::kMore;
}

}  // namespace tidegate::redis
