// SPDX-License-Identifier: Apache-2.0
#include "store/redis/agreement.hpp"

#include <optional>

#include "store/redis/greeting.hpp"

namespace tidegate::redis {
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
    if (now >= until_) return End(problem_.empty() ? "it does not answer" : problem_);
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
    if (!reply->is(Reply::Type::kText) || reply->text.empty()) return End("it keeps no key");
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

  // Client::Listener: nobody calls.
  void OnAnswered(Call&, Client::Clock::time_point, bool) override {}
  void OnFailed(Call&, Reason) override {}
  void OnSplit(Call&) override {}
  void OnInvalidated(std::string_view) override {}
  void OnConnections() override {}
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
  Result<std::string> result_ = std::unexpected(Error{ErrorCode::kNetwork, "not asked"});
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
