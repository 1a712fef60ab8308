// SPDX-License-Identifier: Apache-2.0
#include "store/redis/heartbeat.hpp"

#include <algorithm>
#include <expected>
#include <optional>
#include <utility>

#include "store/redis/greeting.hpp"
#include "store/redis/scripts.hpp"

namespace tidegate::redis {

Heartbeat::Heartbeat(net::Reactor& reactor, Client& client, Fleet& fleet, Options options)
    : net::Timer(reactor.timers()), client_(client), fleet_(fleet), options_(std::move(options)) {}

void Heartbeat::UseKey(std::string key_id, std::string secret) {
  options_.key_id = std::move(key_id);
  options_.secret = std::move(secret);
  // The others should not see the old one for long; nor may a Redis that tells another key each
  // time keep us busy.
  ArmAt(net::Timer::Clock::now() + kSoon);
}

std::string Heartbeat::Command(bool leaving) const {
  std::string command;
  const auto alive = std::chrono::microseconds{kAlive}.count();
  AppendCommand(command, {"EVAL", HeartbeatScript(), "2", client_.names().Nodes(),
                          client_.names().Secret(), options_.node, options_.key_id, options_.secret,
                          std::to_string(alive), leaving ? "1" : "0"});
  return command;
}

void Heartbeat::Beat() {
  // Without a connection: look again soon, so that a new node is known as soon as it can be.
  const bool able = !waiting_ && client_.ready(KeyNames::FleetSlot());
  ArmAt(net::Timer::Clock::now() + (able || waiting_ ? kEvery : kSoon));
  if (!able) return;
  waiting_ = true;
  client_.Run(KeyNames::FleetSlot(), Command(false), [this](const Reply* reply) {
    waiting_ = false;
    if (reply != nullptr) OnReply(*reply);
  });
}

void Heartbeat::Leave() {
  Disarm();
  client_.Run(KeyNames::FleetSlot(), Command(true), nullptr);
}

void Heartbeat::NoteNodes(std::int64_t live) {
  const auto now = net::Timer::Clock::now();
  live = std::min(live, kMostNodes);
  // After a pause Redis may have been emptied: what it knows starts from nothing.
  const bool paused = now - std::exchange(last_reply_, now) > 2 * kEvery;
  if (live >= fleet_.nodes || paused) {
    fewer_since_ = now;
    if (live < fleet_.nodes) return;
  } else if (now - fewer_since_ < kAlive) {
    return;
  }
  fleet_.nodes = live;
}

void Heartbeat::OnReply(const Reply& reply) {
  // Live nodes, those with another key, the fleet's key.
  if (!reply.is(Reply::Type::kArray) || reply.elements.size() != 3 ||
      !reply.elements[0].is(Reply::Type::kInteger) ||
      !reply.elements[1].is(Reply::Type::kInteger)) {
    return;
  }
  NoteNodes(std::max<std::int64_t>(1, reply.elements[0].integer));
  fleet_.key_mismatches = reply.elements[1].integer;
  ++fleet_.heartbeats;
  const std::string_view secret = reply.elements[2].text;
  if (options_.secret.empty() || secret.empty()) return;
  if (secret == options_.secret) return options_.on_agreed();
  options_.on_secret(std::string(secret));
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kOften{2};

Client::Options ForOneQuestion(Client::Options options, std::chrono::milliseconds patience) {
  options.name = "tidegate-start";
  // Of several, another one may answer meanwhile.
  if (options.url.mode == RedisUrl::Mode::kSingle) options.connect_timeout = patience;
  return options;
}

/// A client for one question.
class Agreement final : private Client::Listener, private net::Timer {
 public:
  Agreement(net::Reactor& reactor, const Client::Options& redis, const std::string& candidate,
            std::chrono::milliseconds patience)
      : net::Timer(reactor.timers()),
        reactor_(reactor),
        one_redis_(redis.url.mode == RedisUrl::Mode::kSingle),
        candidate_(candidate),
        until_(Clock::now() + patience),
        client_(reactor, ForOneQuestion(redis, patience), fingerprinter_, *this) {}

  void Begin() {
    client_.Start();
    ArmAt(Clock::now());
  }
  [[nodiscard]] Result<std::string> result() const { return result_; }

 private:
  void OnTimer(net::Timer::Clock::time_point now) override {
    if (now >= until_) return End(problem_.empty() ? "Redis does not answer" : problem_);
    ArmAt(now + kOften);
    if (!asking_ && client_.ready(KeyNames::FleetSlot())) Ask();
  }
  void Ask() {
    asking_ = true;
    const std::string key = client_.names().Secret();
    std::string set;
    AppendCommand(set, {"SET", key, candidate_, "NX"});
    client_.Run(KeyNames::FleetSlot(), set, [this](const Reply* reply) { (void)Good(reply); });
    std::string get;
    AppendCommand(get, {"GET", key});
    client_.Run(KeyNames::FleetSlot(), get, [this](const Reply* reply) { OnKey(reply); });
  }
  /// A slot that has moved, or a connection that broke, is no reason to give up.
  bool Good(const Reply* reply) {
    if (reply == nullptr) return false;
    if (!reply->is(Reply::Type::kError)) return true;
    problem_ = reply->text;
    if (RemedyOf(KindOf(reply->text)) == Remedy::kGiveUp) End(problem_);
    return false;
  }
  void OnKey(const Reply* reply) {
    asking_ = false;
    if (!Good(reply) || ended_) return;
    // Written a moment ago: whoever has no such key did not write it.
    if (!reply->is(Reply::Type::kText) || reply->text.empty())
      return End("Redis did not keep the key that was written");
    result_ = std::string(reply->text);
    ended_ = true;
    reactor_.Stop();
  }
  void End(const std::string& problem) {
    if (ended_) return;
    ended_ = true;
    result_ = std::unexpected(Error{ErrorCode::kNetwork, problem});
    reactor_.Stop();
  }

  void OnNotice(Notice notice, ErrorKind, const std::string&, const std::string& text) override {
    if (notice == Notice::kUp) return;
    problem_ = text;
    // Of several, another one may answer.
    if (one_redis_) End(problem_);
  }

  net::Reactor& reactor_;
  const bool one_redis_;
  const std::string candidate_;
  const Clock::time_point until_;
  const Fingerprinter fingerprinter_;
  std::string problem_;
  bool asking_ = false;
  bool ended_ = false;
  Result<std::string> result_ = std::unexpected(Error{ErrorCode::kNetwork, "no reply"});
  Client client_;
};

}  // namespace

Result<std::string> AgreeOnSecret(const Client::Options& redis, const std::string& candidate,
                                  std::chrono::milliseconds patience) {
  net::Deadlines::Durations durations;
  durations.fill(std::chrono::seconds{1});
  net::Reactor reactor(durations);
  Agreement agreement(reactor, redis, candidate, patience);
  reactor.Post([&agreement] { agreement.Begin(); });
  reactor.Run(std::nullopt);
  return agreement.result();
}

}  // namespace tidegate::redis
