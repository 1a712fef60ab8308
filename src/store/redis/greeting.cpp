// SPDX-License-Identifier: Apache-2.0
#include "store/redis/greeting.hpp"

namespace tidegate::redis {

void AppendCommand(std::string& out, std::initializer_list<std::string_view> words) {
  out.append("*").append(std::to_string(words.size())).append("\r\n");
  for (const std::string_view word : words) {
    out.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
  }
}

void Greeting::Begin(std::string& out) {
  steps_.clear();
  at_ = 0;
  subscribed_ = false;
  const std::string_view user =
      options_.user.empty() ? std::string_view("default") : std::string_view(options_.user);
  if (options_.user.empty() && options_.password.empty()) {
    AppendCommand(out, {"HELLO", "3", "SETNAME", options_.name});
  } else {
    AppendCommand(out, {"HELLO", "3", "AUTH", user, options_.password, "SETNAME", options_.name});
  }
  steps_.push_back(Step::kHello);
  if (options_.master_only) {
    AppendCommand(out, {"ROLE"});
    steps_.push_back(Step::kRole);
  }
  if (options_.database != 0) {
    AppendCommand(out, {"SELECT", std::to_string(options_.database)});
    steps_.push_back(Step::kSelect);
  }
  AppendCommand(out, {"SUBSCRIBE", options_.channel});
  steps_.push_back(Step::kSubscribe);
  if (!options_.also.empty()) {
    AppendCommand(out, {"SUBSCRIBE", options_.also});
    steps_.push_back(Step::kAlso);
  }
  if (options_.script.empty()) return;
  AppendCommand(out, {"SCRIPT", "LOAD", options_.script});
  steps_.push_back(Step::kLoad);
}

Greeting::Progress Greeting::Fail(Step step, std::string_view error) {
  kind_ = KindOf(error);
  // Redis quotes what it does not understand, and HELLO carries the password.
  if (step == Step::kHello) error = error.substr(0, error.find_first_of(",'`"));
  const std::string what(options_.what);
  const std::string said = ": it says `" + std::string(error.substr(0, 200)) + "`";
  switch (kind_) {
    case ErrorKind::kNoAuth:
      problem_ = what + " asks for a password: write it into " +
                 std::string(options_.where_password) + said;
      return Progress::kFailed;
    case ErrorKind::kWrongPass:
      problem_ = what + " refuses the user or the password of " +
                 std::string(options_.where_password) + said;
      return Progress::kFailed;
    case ErrorKind::kNoPerm:
      problem_ = "the user of " + what + " lacks a permission that Tidegate needs" + said;
      return Progress::kFailed;
    case ErrorKind::kLoading:
      problem_ = what + " is still loading its data" + said;
      return Progress::kFailed;
    default:
      break;
  }
  problem_ = step == Step::kHello
                 ? what + " does not speak RESP3: Tidegate needs Redis 6.2 or later"
             : step == Step::kSelect ? "Redis refuses the database of store.url"
                                     : "Redis refuses the script";
  problem_ += said;
  return Progress::kFailed;
}

Greeting::Progress Greeting::OnReply(const Reply& reply) {
  if (at_ >= steps_.size()) return Progress::kReady;
  const Step step = steps_[at_];
  if (step == Step::kSubscribe) {
    subscribed_ = reply.is(Reply::Type::kPush);
    if (!subscribed_ && KindOf(reply.text) != ErrorKind::kNoPerm) return Fail(step, reply.text);
  } else if (step == Step::kAlso) {
    // Whether we may or not. A message of the first channel may come before.
    if (reply.is(Reply::Type::kPush) && !reply.elements.empty() &&
        reply.elements.front().text != "subscribe") {
      return Progress::kMore;
    }
  } else if (reply.is(Reply::Type::kPush)) {
    return Progress::kMore;  // Somebody else's refund.
  } else if (reply.is(Reply::Type::kError)) {
    return Fail(step, reply.text);
  } else if (step == Step::kRole) {
    const bool master = reply.is(Reply::Type::kArray) && !reply.elements.empty() &&
                        reply.elements.front().text == "master";
    if (!master) {
      kind_ = ErrorKind::kReadOnly;
      problem_ = "the sentinels name a Redis that is not the master (any more, or yet)";
      return Progress::kFailed;
    }
  } else if (step == Step::kLoad) {
    if (!reply.is(Reply::Type::kText) || reply.text.size() != 40) {
      return Fail(step, "something that is not the script's SHA-1");
    }
    sha_ = reply.text;
  }
  return ++at_ == steps_.size() ? Progress::kReady : Progress::kMore;
}

}  // namespace tidegate::redis
