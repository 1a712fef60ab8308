// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_overrides.hpp"

#include <algorithm>
#include <expected>
#include <unordered_map>
#include <utility>

#include "base/random.hpp"
#include "store/redis/greeting.hpp"
#include "store/redis/scripts.hpp"

namespace tidegate::redis {
namespace {

using std::chrono::milliseconds;

/// Takes a whole number and the blank behind it off `text`.
std::optional<std::int64_t> TakeNumber(std::string_view& text) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto number = ReadWhole(text.substr(0, blank));
  text.remove_prefix(blank + 1);
  return number;
}

std::optional<std::int64_t> NumberIn(const Reply& reply) {
  if (reply.is(Reply::Type::kInteger)) return reply.integer;
  return reply.is(Reply::Type::kText) ? ReadInteger(reply.text) : std::nullopt;
}

Error NotSent() { return {ErrorCode::kUnavailable, "Redis is not answering"}; }

/// The error of a command that was sent. `reply` is nullptr if there was none.
Error ReplyError(const Reply* reply) {
  if (reply == nullptr) return {ErrorCode::kNetwork, "Redis did not answer"};
  if (!reply->is(Reply::Type::kError)) {
    return {ErrorCode::kNetwork, "Redis sent a malformed reply"};
  }
  const ErrorKind kind = KindOf(reply->text);
  // The user may have the permission for the first write of the script and lack that for a later.
  const bool refused = kind != ErrorKind::kNoPerm && ExecutedDespite(kind) == Executed::kNo;
  return {refused ? ErrorCode::kUnavailable : ErrorCode::kNetwork,
          "Redis answered `" + std::string(reply->text.substr(0, 200)) + "`"};
}

/// Returns the number of a version, which later versions exceed; 0 if it is malformed.
std::int64_t NumberOf(std::string_view version) {
  const std::size_t dot = version.find('.');
  return dot == std::string_view::npos ? 0 : ReadWhole(version.substr(0, dot)).value_or(0);
}

/// What no other version ends with.
std::string NewTail() { return RandomHex(32); }

}  // namespace

RedisOverrides::RedisOverrides(net::Reactor& reactor, Client& client, Listener listener)
    : net::Timer(reactor.timers()), client_(client), listener_(std::move(listener)) {}

std::string RedisOverrides::Command(const std::vector<std::string>& words) const {
  const KeyNames& names = client_.names();
  std::vector<std::string> all{"EVAL",
                               std::string(RegisterScript()),
                               "4",
                               names.Overrides(),
                               names.Audit(),
                               names.AuthFailures(),
                               names.AuditHistory()};
  all.insert(all.end(), words.begin(), words.end());
  std::string command;
  AppendCommand(command, all);
  return command;
}

// --- Knowing it ----------------------------------------------------------------

void RedisOverrides::PollAgain() {
  if (polling_) {
    again_ = true;
  } else {
    Poll();
  }
}

void RedisOverrides::Poll() {
  const bool able = !polling_ && client_.ready(KeyNames::FleetSlot());
  ArmAt(net::Timer::Clock::now() + (able || polling_ ? kEvery : kSoon));
  if (!able) {
    // It was done in any case; only to see it takes longer.
    if (!polling_) TellMakers();
    return;
  }
  polling_ = true;
  // `-` is never a version: the first time all of it is read, also if there is none.
  client_.Run(KeyNames::FleetSlot(),
              Command({"poll", version_.value_or("-"), std::to_string(kMost),
                       std::to_string(seen_.changes), std::to_string(seen_.failures)}),
              [this](const Reply* reply) { OnPolled(reply); });
}

void RedisOverrides::OnPolled(const Reply* reply) {
  polling_ = false;
  auto polled = reply == nullptr ? std::nullopt : ReadPoll(*reply);
  if (polled) {
    true_at_ = net::Timer::Clock::now();
    RememberWritten(polled->written);
    problem_.clear();
    // A flush, or a failover that lost the last writes, has taken what was said.
    const bool lost = NumberOf(version_.value_or("")) > NumberOf(polled->version);
    if (lost && !(known_.entries.empty() && polled->version.empty())) return Restore();
    const bool changed = version_ != polled->version;
    version_ = polled->version;
    if (changed && polled->table) {
      const Delta delta = Difference(known_, *polled->table);
      known_ = *std::move(polled->table);
      if (!delta.empty()) listener_.on_change(delta);
    }
  } else if (reply != nullptr) {
    // That there is no answer at all is said elsewhere.
    std::string problem = ReplyError(reply).message;
    if (problem != problem_) listener_.on_problem(problem);
    problem_ = std::move(problem);
  }
  if (std::exchange(again_, false)) return Poll();
  TellMakers();
}

void RedisOverrides::Restore() {
  std::vector<std::string> words{"restore", *version_};
  for (const Entry& entry : known_.entries) {
    words.push_back(entry.field);
    words.push_back(std::to_string(entry.since_ms) + " " +
                    std::to_string(entry.expires_ms.value_or(0)) + " " + entry.value);
  }
  polling_ = true;
  client_.Run(KeyNames::FleetSlot(), Command(words), [this](const Reply* reply) {
    polling_ = false;
    const auto restored = reply == nullptr ? std::nullopt : NumberIn(*reply);
    if (restored == 1) listener_.on_restored(known_.entries.size());
    // Another node was quicker, or there is a newer change: the table in Redis counts.
    // Without an answer it is tried again with the next poll, and what is known stays in force.
    if (restored == 0) again_ = true;
    if (std::exchange(again_, false)) return Poll();
    TellMakers();
  });
}

std::optional<RedisOverrides::Polled> RedisOverrides::ReadPoll(const Reply& reply) {
  constexpr std::size_t kHead = 6;  // Time, version, and four numbers of the history.
  if (!reply.is(Reply::Type::kArray) || reply.elements.size() < kHead ||
      reply.elements.size() % 2 != 0) {
    return std::nullopt;
  }
  const auto now = NumberIn(reply.elements[0]);
  const auto changes = NumberIn(reply.elements[4]);
  const auto failures = NumberIn(reply.elements[5]);
  if (!now || !changes || !failures || !reply.elements[1].is(Reply::Type::kText)) {
    return std::nullopt;
  }
  Polled polled{std::string(reply.elements[1].text), {*changes, *failures}, std::nullopt};
  // Without a version there is no table, and the reply ends here as well.
  if (reply.elements.size() == kHead && !polled.version.empty()) return polled;
  Table& table = polled.table.emplace();
  table.now_ms = *now;
  for (std::size_t i = kHead; i + 1 < reply.elements.size(); i += 2) {
    const Reply& field = reply.elements[i];
    std::string_view value = reply.elements[i + 1].text;
    if (field.text == "v") continue;
    const auto since = TakeNumber(value);
    const auto expires = since ? TakeNumber(value) : std::nullopt;
    if (!expires || (*expires != 0 && *expires <= *now)) continue;
    table.entries.push_back({std::string(field.text), std::string(value), *since,
                             *expires == 0 ? std::nullopt : std::optional(*expires)});
  }
  return polled;
}

SharedOverrides::Delta RedisOverrides::Difference(const Table& before, const Table& after) {
  Delta delta{.now_ms = after.now_ms, .changed = {}, .removed = {}};
  std::unordered_map<std::string_view, const Entry*> known;
  known.reserve(before.entries.size());
  for (const Entry& entry : before.entries) known.emplace(entry.field, &entry);
  for (const Entry& entry : after.entries) {
    const auto found = known.find(entry.field);
    if (found == known.end() || *found->second != entry) delta.changed.push_back(entry);
    if (found != known.end()) known.erase(found);
  }
  for (const Entry& entry : before.entries) {
    if (known.contains(entry.field)) delta.removed.push_back(entry.field);
  }
  return delta;
}

std::optional<milliseconds> RedisOverrides::age() const {
  if (!true_at_) return std::nullopt;
  return std::chrono::floor<milliseconds>(net::Timer::Clock::now() - *true_at_);
}

// --- Changing it ---------------------------------------------------------------

void RedisOverrides::Ask(const std::vector<std::string>& words, Done<Change> done) {
  if (!client_.MayRun(KeyNames::FleetSlot())) return done(std::unexpected(NotSent()));
  client_.Run(
      KeyNames::FleetSlot(), Command(words), [this, done = std::move(done)](const Reply* reply) {
        if (reply == nullptr || !reply->is(Reply::Type::kArray) || reply->elements.size() != 2) {
          return done(std::unexpected(ReplyError(reply)));
        }
        const auto applied = NumberIn(reply->elements[0]);
        const auto expires = NumberIn(reply->elements[1]);
        if (!applied || !expires) return done(std::unexpected(ReplyError(reply)));
        if (*applied < 0) {
          return done(std::unexpected(Error{
              ErrorCode::kExhausted, "the fleet's table of overrides is full; remove some first"}));
        }
        const Change change{*applied > 0, *expires == 0 ? std::nullopt : std::optional(*expires)};
        // Whoever changed it finds it changed, here at least.
        after_poll_.push_back([done, change] { done(change); });
        PollAgain();
      });
}

void RedisOverrides::Put(const std::string& field, const std::string& value,
                         std::optional<milliseconds> ttl, const std::string& record,
                         Done<Change> done) {
  Ask({"put", field, value, std::to_string(ttl ? ttl->count() : 0), NewTail(), record,
       client_.names().Channel(), std::to_string(kMost), std::to_string(kRecords), KnownNumber()},
      std::move(done));
}

void RedisOverrides::Remove(const std::string& field, const std::string& record,
                            Done<Change> done) {
  Ask({"remove", field, "", "0", NewTail(), record, client_.names().Channel(),
       std::to_string(kMost), std::to_string(kRecords), KnownNumber()},
      std::move(done));
}

std::string RedisOverrides::KnownNumber() const {
  return std::to_string(NumberOf(version_.value_or("")));
}

void RedisOverrides::AddRecord(const std::string& note, std::size_t most, const std::string& record,
                               bool applied, Done<Change> done) {
  if (!client_.ready(KeyNames::FleetSlot())) return done(std::unexpected(NotSent()));
  client_.Run(KeyNames::FleetSlot(),
              Command({note, applied ? "1" : "0", record, std::to_string(most)}),
              [applied, done = std::move(done)](const Reply* reply) {
                if (reply == nullptr || !reply->is(Reply::Type::kInteger)) {
                  return done(std::unexpected(ReplyError(reply)));
                }
                // The next poll tells how many records there are. A number that is remembered
                // before the script has written `since` would look like a loss.
                done(Change{applied, std::nullopt});
              });
}

// --- What was done -------------------------------------------------------------

std::optional<SharedOverrides::Record> RedisOverrides::ReadRecord(std::string_view text) {
  const auto time = TakeNumber(text);
  const auto applied = time ? TakeNumber(text) : std::nullopt;
  if (!applied) return std::nullopt;
  return Record{*time, *applied != 0, std::string(text)};
}

std::optional<SharedOverrides::Audit> RedisOverrides::ReadAudit(const Reply& reply,
                                                                std::size_t most) {
  if (!reply.is(Reply::Type::kArray) || reply.elements.size() != 6) return std::nullopt;
  const auto since = NumberIn(reply.elements[0]);
  const auto lost = NumberIn(reply.elements[1]);
  if (!since || !lost) return std::nullopt;
  Audit audit;
  audit.history.since_ms = *since;
  if (*lost > 0) audit.history.lost_ms = *lost;
  std::vector<Record> lists[2];
  std::uint64_t missing[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const auto written = NumberIn(reply.elements[2 + i]);
    const Reply& list = reply.elements[4 + i];
    if (!written || !list.is(Reply::Type::kArray)) return std::nullopt;
    for (const Reply& element : list.elements) {
      if (auto record = ReadRecord(element.text)) lists[i].push_back(*std::move(record));
    }
    const auto kept = static_cast<std::int64_t>(list.elements.size());
    missing[i] = static_cast<std::uint64_t>(std::max<std::int64_t>(*written - kept, 0));
  }
  audit.history.missing_changes = missing[0];
  audit.history.missing_failures = missing[1];
  audit.records = Merge(std::move(lists[0]), lists[1], most);
  return audit;
}

void RedisOverrides::Records(std::size_t most, Done<Audit> done) {
  if (!client_.ready(KeyNames::FleetSlot())) return done(std::unexpected(NotSent()));
  // Both lists at once: their lengths must fit the numbers of records written.
  client_.Run(KeyNames::FleetSlot(),
              Command({"records", std::to_string(seen_.changes), std::to_string(seen_.failures)}),
              [this, most, done = std::move(done)](const Reply* reply) {
                auto audit = reply == nullptr ? std::nullopt : ReadAudit(*reply, most);
                if (!audit) return done(std::unexpected(ReplyError(reply)));
                const auto written = [&](std::size_t place) {
                  return *NumberIn(reply->elements[place]);
                };
                RememberWritten({written(2), written(3)});
                done(*std::move(audit));
              });
}

}  // namespace tidegate::redis
