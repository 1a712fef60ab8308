// SPDX-License-Identifier: Apache-2.0
#include "store/redis/sentinel_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "unit/store/redis/parsed_reply.hpp"

namespace tidegate::redis {
namespace {

using namespace std::chrono_literals;
using News = SentinelView::News;
using TimePoint = SentinelView::TimePoint;

constexpr TimePoint kStart{1000h};
const std::string kNull = "*-1\r\n";
const std::string kNone = "*0\r\n";
const std::string kNoSuchMaster = "-ERR No such master with that name\r\n";

Endpoint At(const std::string& host, std::uint16_t port = 26379) {
  return {.host = host, .port = port};
}
std::vector<Endpoint> Three() { return {At("s1"), At("s2"), At("s3")}; }

std::string Address(const std::string& host, const std::string& port = "6379") {
  return Array({Bulk(host), Bulk(port)});
}
std::string Epoch(const std::string& epoch, char kind = '%') {
  return Many(kind, {Bulk("name"), Bulk("mymaster"), Bulk("config-epoch"), Bulk(epoch),
                     Bulk("quorum"), Bulk("2")});
}
std::string Other(const std::string& host, const std::string& port = "26379", char kind = '%') {
  return Many(kind, {Bulk("ip"), Bulk(host), Bulk("port"), Bulk(port)});
}
std::string Switch(const std::string& text) {
  return Many('>', {Bulk("message"), Bulk("+switch-master"), Bulk(text)});
}

/// A view, and the time that the test gives it.
struct Watched {
  explicit Watched(std::vector<Endpoint> sentinels = Three(), std::uint64_t seed = 1)
      : view(std::move(sentinels), "mymaster", seed) {}

  void Connect() { view.OnConnected(now); }
  void Ask() {
    std::string out;
    view.Ask(out, now);
  }
  News Reply(const std::string& bytes) {
    const ParsedReply reply(bytes);
    return view.OnReply(*reply, now);
  }
  News Push(const std::string& bytes) {
    const ParsedReply reply(bytes);
    return view.OnPush(*reply, now);
  }
  /// Sends a request and passes on all three replies to it. Returns the news that they bring.
  News Round(const std::string& host, const std::string& epoch) {
    Ask();
    News news = Reply(Address(host));
    if (news == News::kNothing) news = Reply(Epoch(epoch));
    if (news != News::kUseless) {
      EXPECT_EQ(Reply(kNone), News::kNothing);
    }
    return news;
  }
  [[nodiscard]] std::string Master() const { return view.master() ? view.master()->Shown() : "-"; }

  SentinelView view;
  TimePoint now = kStart;
};

TEST(SentinelViewTest, SendsRequestOnConnectingAndPeriodically) {
  Watched watched;
  EXPECT_LE(watched.view.connect_at(), kStart);
  EXPECT_EQ(watched.view.ask_at(), TimePoint::max());
  watched.Connect();
  EXPECT_EQ(watched.view.ask_at(), kStart);
  std::string out = "before";
  watched.view.Ask(out, kStart);
  EXPECT_EQ(out,
            "before*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n$8\r\nmymaster\r\n"
            "*3\r\n$8\r\nSENTINEL\r\n$6\r\nMASTER\r\n$8\r\nmymaster\r\n"
            "*3\r\n$8\r\nSENTINEL\r\n$9\r\nSENTINELS\r\n$8\r\nmymaster\r\n");
  EXPECT_EQ(watched.view.ask_at(), TimePoint::max());
  // The address is used once its epoch is known.
  EXPECT_EQ(watched.Reply(Address("10.0.0.1")), News::kNothing);
  EXPECT_EQ(watched.Master(), "-");
  EXPECT_EQ(watched.Reply(Epoch("0")), News::kMaster);
  EXPECT_EQ(watched.Master(), "10.0.0.1:6379");
  EXPECT_EQ(watched.view.ask_at(), TimePoint::max());
  watched.now += 3ms;
  EXPECT_EQ(watched.Reply(kNone), News::kNothing);
  EXPECT_EQ(watched.view.ask_at(), watched.now + SentinelView::kEvery);
  // An unchanged master is not news, and an unexpected reply is ignored.
  EXPECT_EQ(watched.Round("10.0.0.1", "0"), News::kNothing);
  EXPECT_EQ(watched.Reply(Address("10.0.0.9")), News::kNothing);
  EXPECT_EQ(watched.Reply(Epoch("9")), News::kNothing);
  EXPECT_EQ(watched.Master(), "10.0.0.1:6379");
  EXPECT_EQ(watched.Round("fd00::1", "1"), News::kMaster);
  EXPECT_EQ(watched.Master(), "[fd00::1]:6379");
}

TEST(SentinelViewTest, ConnectsToRandomSentinelFirst) {
  std::set<std::string> first;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    first.insert(Watched(Three(), seed * 77'777).view.sentinel().host);
  }
  EXPECT_EQ(first.size(), 3u);
}

TEST(SentinelViewTest, ReportsWhySentinelIsUseless) {
  struct Case {
    std::vector<std::string> replies;
    std::string why;
  };
  const std::string nonsense = "sent a malformed reply: check that its port is a sentinel's";
  const std::string unknown = "has no master named 'mymaster'";
  for (const auto& [replies, why] :
       std::vector<Case>{{{"-NOAUTH Authentication required.\r\n"},
                          "requires a password: write store.sentinel.password"},
                         {{"-NOPERM this user has no permissions\r\n"},
                          "does not allow the user of store.sentinel"},
                         {{"-ERR unknown command 'SENTINEL'\r\n"},
                          "check its port (reply: `ERR unknown command 'SENTINEL'`)"},
                         {{"!7\r\nERR\x1b\r\nx\r\n"}, "(reply: `ERR???x`)"},
                         {{kNull}, unknown},
                         {{"_\r\n"}, unknown},
                         {{kNoSuchMaster}, unknown},
                         {{Address("a"), kNoSuchMaster}, unknown},
                         {{Bulk("OK")}, nonsense},
                         {{Array({Bulk("a")})}, nonsense},
                         {{Array({Bulk("a"), Bulk("1"), Bulk("2")})}, nonsense},
                         {{Array({Bulk("a"), Int(6379)})}, nonsense},
                         {{Address("a", "0")}, nonsense},
                         {{Address("a", "65536")}, nonsense},
                         {{Address("a", "6379 ")}, nonsense},
                         {{Address("")}, nonsense},
                         {{Address("a\nb")}, nonsense},
                         {{Address(std::string(254, 'a'))}, nonsense},
                         {{Address("a"), Bulk("OK")}, nonsense},
                         {{Address("a"), kNone}, nonsense},
                         {{Address("a"), Epoch("-1")}, nonsense},
                         {{Address("a"), Epoch("x")}, nonsense},
                         {{Address("a"), Epoch("99999999999999999999")}, nonsense}}) {
    Watched watched({At("fd00::5")});
    watched.Connect();
    watched.Ask();
    for (std::size_t i = 0; i + 1 < replies.size(); ++i) {
      ASSERT_EQ(watched.Reply(replies[i]), News::kNothing);
    }
    ASSERT_EQ(watched.Reply(replies.back()), News::kUseless) << replies.back();
    EXPECT_TRUE(watched.view.problem().starts_with("the sentinel at [fd00::5]:26379 "));
    EXPECT_NE(watched.view.problem().find(why), std::string::npos) << watched.view.problem();
    EXPECT_EQ(watched.Master(), "-");
    // More replies of this sentinel are ignored.
    EXPECT_EQ(watched.Reply(Epoch("1")), News::kNothing);
    EXPECT_EQ(watched.Push(Switch("mymaster a 1 b 2")), News::kNothing);
    watched.view.OnTrouble(watched.now);
    EXPECT_EQ(watched.view.ask_at(), TimePoint::max());
  }
}

TEST(SentinelViewTest, FollowsMasterWithoutPermissionToReadEpoch) {
  Watched watched;
  watched.Connect();
  EXPECT_EQ(watched.Round("a", "5"), News::kMaster);
  watched.Ask();
  EXPECT_EQ(watched.Reply(Address("b")), News::kNothing);
  EXPECT_EQ(watched.Reply("-NOPERM no\r\n"), News::kMaster);
  EXPECT_EQ(watched.Master(), "b:6379");
  EXPECT_EQ(watched.Reply("-NOPERM no\r\n"), News::kNothing);
  EXPECT_EQ(watched.view.ask_at(), watched.now + SentinelView::kEvery);
  EXPECT_EQ(watched.view.sentinels().size(), 3u);
  // The view still remembers the epoch from before.
  EXPECT_EQ(watched.Round("c", "4"), News::kUseless);
}

TEST(SentinelViewTest, IgnoresSentinelWithOldEpoch) {
  for (const char kind : {'%', '*'}) {
    Watched watched;
    watched.Connect();
    EXPECT_EQ(watched.Round("new", "7"), News::kMaster);
    watched.view.OnLost(watched.now);
    watched.Connect();
    watched.Ask();
    EXPECT_EQ(watched.Reply(Address("old")), News::kNothing);
    EXPECT_EQ(watched.Reply(Epoch("6", kind)), News::kUseless);
    EXPECT_NE(watched.view.problem().find(
                  "is behind the others: its epoch is 6, but another sentinel's is 7"),
              std::string::npos);
    EXPECT_EQ(watched.Master(), "new:6379");
    watched.view.OnLost(watched.now);
    watched.Connect();
    EXPECT_EQ(watched.Round("same", "7"), News::kMaster);
    EXPECT_EQ(watched.view.problem(), "");
  }
}

TEST(SentinelViewTest, AcceptsLowerEpochOfAllSentinels) {
  Watched watched;
  watched.Connect();
  EXPECT_EQ(watched.Round("a", "7"), News::kMaster);
  for (int i = 0; i < 2; ++i) {
    watched.view.OnLost(watched.now += 1s);
    watched.Connect();
    EXPECT_EQ(watched.Round("b", "0"), News::kUseless);
    EXPECT_EQ(watched.Master(), "a:6379");
  }
  watched.view.OnLost(watched.now += 1s);
  watched.Connect();
  EXPECT_EQ(watched.Round("b", "0"), News::kMaster);
  EXPECT_EQ(watched.Master(), "b:6379");
}

TEST(SentinelViewTest, LeavesSentinelThatKeepsNamingFailingMaster) {
  Watched watched;
  watched.Connect();
  EXPECT_EQ(watched.Round("a", "1"), News::kMaster);
  const Endpoint first = watched.view.sentinel();
  std::size_t rounds = 0;
  for (News news = News::kNothing; news != News::kUseless && rounds < 100; ++rounds) {
    watched.view.OnTrouble(watched.now);
    watched.now = watched.view.ask_at();
    news = watched.Round("a", "1");
  }
  EXPECT_EQ(rounds, SentinelView::kMostFruitless);
  watched.view.OnLost(watched.now);
  watched.view.OnWell();
  EXPECT_NE(watched.view.sentinel(), first);
  // While the master does not fail, the view keeps its sentinel.
  watched.Connect();
  for (int i = 0; i < 20; ++i, watched.now += 5s)
    EXPECT_EQ(watched.Round("a", "1"), News::kNothing);
}

TEST(SentinelViewTest, FollowsMasterSwitchAtOnceAndVerifiesNewMaster) {
  Watched watched;
  watched.Connect();
  EXPECT_EQ(watched.Round("a", "1"), News::kMaster);
  watched.now += 1s;
  EXPECT_EQ(watched.Push(Switch("mymaster a 6379 b 6380")), News::kMaster);
  EXPECT_EQ(watched.Master(), "b:6380");
  EXPECT_EQ(watched.view.ask_at(), watched.now);
  // A second report of the same master is not news, but the view still has to learn its epoch.
  watched.Ask();
  EXPECT_EQ(watched.Push(Switch("mymaster a 6379 b 6380")), News::kNothing);
  EXPECT_EQ(watched.Reply(Address("b", "6380")), News::kNothing);
  EXPECT_EQ(watched.Reply(Epoch("2")), News::kNothing);
  EXPECT_EQ(watched.Reply(kNone), News::kNothing);
  EXPECT_EQ(watched.view.ask_at(), watched.now);
  EXPECT_EQ(watched.Round("b", "2"), News::kMaster);
  EXPECT_EQ(watched.Round("a", "1"), News::kUseless);
}

TEST(SentinelViewTest, KeepsMasterSwitchDespiteOlderReply) {
  Watched watched;
  watched.Connect();
  watched.Ask();
  EXPECT_EQ(watched.Reply(Address("old")), News::kNothing);
  EXPECT_EQ(watched.Push(Switch("mymaster old 6379 new 6379")), News::kMaster);
  EXPECT_EQ(watched.view.ask_at(), TimePoint::max());
  EXPECT_EQ(watched.Reply(Epoch("2")), News::kNothing);
  EXPECT_EQ(watched.Reply(kNone), News::kNothing);
  EXPECT_EQ(watched.Master(), "new:6379");
  EXPECT_EQ(watched.view.ask_at(), watched.now);
}

TEST(SentinelViewTest, SendsRequestAfterPromotion) {
  const auto promoted = [](const std::string& master) {
    return Many('>', {Bulk("message"), Bulk("+promoted-slave"),
                      Bulk("slave b:6379 b 6379 @ " + master + " a 6379")});
  };
  Watched watched;
  watched.Connect();
  EXPECT_EQ(watched.Round("a", "1"), News::kMaster);
  const TimePoint later = watched.view.ask_at();
  for (const std::string other : {"another", "mymaster2", "mymaste", ""}) {
    EXPECT_EQ(watched.Push(promoted(other)), News::kNothing);
    EXPECT_EQ(watched.view.ask_at(), later) << other;
  }
  EXPECT_EQ(watched.Push(promoted("mymaster")), News::kNothing);
  EXPECT_EQ(watched.view.ask_at(), watched.now);
  EXPECT_EQ(watched.Round("b", "1"), News::kMaster);
  EXPECT_EQ(watched.Master(), "b:6379");
}

TEST(SentinelViewTest, IgnoresUnrelatedPushMessages) {
  Watched watched;
  EXPECT_EQ(watched.Push(Switch("mymaster a 1 b 2")), News::kNothing) << "not connected";
  watched.Connect();
  EXPECT_EQ(watched.Round("a", "1"), News::kMaster);
  for (const std::string& bytes :
       {Many('>', {Bulk("subscribe"), Bulk("+switch-master"), Int(1)}),
        Many('>', {Bulk("message"), Bulk("+sdown"), Bulk("mymaster a 1 b 2")}),
        Many('>', {Bulk("message"), Bulk("+switch-master")}), Many('>', {}),
        Many('>', {Bulk("message"), Bulk("+switch-master"), Int(2)}),
        Many('>', {Bulk("message"), Bulk("+switch-master"), Bulk("mymaster a 1 b 2"), Int(1)}),
        Switch(""), Switch("mymaster"), Switch("mymaster a 1 b"), Switch("mymaster a 1 b "),
        Switch("mymaster a 1 b 0"), Switch("mymaster a 1 b 65536"), Switch("mymaster a 1 b 2 "),
        Switch("mymaster a 1 b 2 3"), Switch("mymaster a 1  2"), Switch("mymaster2 a 1 b 2"),
        Switch("other a 1 b 2"), Switch("mymaster a 1 b\n 2")}) {
    EXPECT_EQ(watched.Push(bytes), News::kNothing) << bytes;
    EXPECT_EQ(watched.Reply(bytes), News::kNothing) << bytes;
    EXPECT_EQ(watched.Master(), "a:6379") << bytes;
    EXPECT_EQ(watched.view.ask_at(), watched.now + SentinelView::kEvery) << bytes;
  }
  // A push between the replies does not count as a reply.
  watched.Ask();
  EXPECT_EQ(watched.Reply(Many('>', {Bulk("subscribe"), Bulk("x"), Int(1)})), News::kNothing);
  EXPECT_EQ(watched.Reply(Address("c")), News::kNothing);
  EXPECT_EQ(watched.Reply(Switch("other a 1 b 2")), News::kNothing);
  EXPECT_EQ(watched.Reply(Epoch("1")), News::kMaster);
}

TEST(SentinelViewTest, LearnsOtherSentinels) {
  for (const char kind : {'%', '*'}) {
    Watched watched;
    watched.Connect();
    watched.Ask();
    EXPECT_EQ(watched.Reply(Address("a")), News::kNothing);
    EXPECT_EQ(watched.Reply(Epoch("1", kind)), News::kMaster);
    EXPECT_EQ(watched.Reply(Array({Other("s2"), Other("s4", "1", kind), Other("s4", "1", kind),
                                   Other("s5", "0"), Other("s\n6"), Other(""), Int(1), kNull,
                                   Many(kind, {Bulk("ip"), Bulk("s7")})})),
              News::kNothing);
    EXPECT_EQ(watched.view.sentinels(),
              (std::vector<Endpoint>{At("s1"), At("s2"), At("s3"), At("s4", 1)}));
  }
}

TEST(SentinelViewTest, KeepsConfiguredSentinelsAndLimitedNumberOfOthers) {
  Watched watched;
  watched.Connect();
  std::string tell;
  for (int round = 0; round < 50; ++round) {
    watched.Ask();
    (void)watched.Reply(Address("a"));
    (void)watched.Reply(Epoch("1"));
    tell = "*40\r\n";
    for (int i = 0; i < 40; ++i) tell += Other("n" + std::to_string(round * 40 + i));
    EXPECT_EQ(watched.Reply(tell), News::kNothing);
    ASSERT_LE(watched.view.sentinels().size(), SentinelView::kMostSentinels);
  }
  const auto& all = watched.view.sentinels();
  EXPECT_EQ(all.size(), SentinelView::kMostSentinels);
  for (const auto& one : Three()) EXPECT_EQ(std::count(all.begin(), all.end(), one), 1);
  // The sentinels that were named last are among those that are kept.
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(std::count(all.begin(), all.end(), At("n" + std::to_string(49 * 40 + i))), 1) << i;
  }
  EXPECT_EQ(Watched(std::vector<Endpoint>(100, At("s"))).view.sentinels().size(),
            SentinelView::kMostSentinels);
}

TEST(SentinelViewTest, KeepsTheConnectedSentinel) {
  Watched watched({At("s1")});
  for (int round = 0; round < 5; ++round) {
    watched.view.OnLost(watched.now);
    watched.Connect();
    const Endpoint before = watched.view.sentinel();
    watched.Ask();
    (void)watched.Reply(Address("a"));
    (void)watched.Reply(Epoch("1"));
    std::string tell = "*64\r\n";
    for (int i = 0; i < 64; ++i) tell += Other("n" + std::to_string(round * 64 + i));
    EXPECT_EQ(watched.Reply(tell), News::kNothing);
    EXPECT_EQ(watched.view.sentinel(), before) << round;
  }
  EXPECT_EQ(watched.view.sentinels().size(), SentinelView::kMostSentinels);
}

TEST(SentinelViewTest, PausesAfterTryingAllSentinels) {
  Watched watched;
  for (int turn = 0; turn < 3; ++turn) {
    std::set<std::string> tried;
    for (int i = 0; i < 3; ++i) {
      tried.insert(watched.view.sentinel().host);
      watched.view.OnLost(watched.now);
      if (turn == 0 && i < 2) {
        EXPECT_EQ(watched.view.connect_at(), watched.now);
      }
    }
    EXPECT_EQ(tried.size(), 3u) << turn;
  }
  std::chrono::nanoseconds longest = 0s;
  for (int i = 0; i < 100; ++i) {
    watched.view.OnLost(watched.now);
    ASSERT_GE(watched.view.connect_at(), watched.now);
    longest = std::max(longest, watched.view.connect_at() - watched.now);
  }
  EXPECT_GT(longest, 400ms);
  EXPECT_LE(longest, Backoff::kCap);
  // One useful sentinel: the next one is tried at once again, and the first pause is a short one.
  watched.Connect();
  EXPECT_EQ(watched.Round("a", "1"), News::kMaster);
  watched.now += 1s;
  for (int i = 0; i < 2; ++i) {
    watched.view.OnLost(watched.now);
    EXPECT_EQ(watched.view.connect_at(), watched.now);
  }
  watched.view.OnLost(watched.now);
  EXPECT_LT(watched.view.connect_at(), watched.now + Backoff::kFirst);
}

TEST(SentinelViewTest, DoesNotLoopOverSentinelsThatCloseConnections) {
  Watched watched;
  int connections = 0;
  for (; watched.now < kStart + 10s; ++connections) {
    watched.now = std::max(watched.now + 1ms, watched.view.connect_at());
    watched.Connect();
    (void)watched.Round("a", "1");
    watched.view.OnLost(watched.now);
  }
  EXPECT_LE(connections, 101);
}

TEST(SentinelViewTest, DropsPendingRequestsWhenConnectionIsLost) {
  Watched watched;
  watched.Connect();
  watched.Ask();
  EXPECT_EQ(watched.Reply(Address("a")), News::kNothing);
  watched.view.OnTrouble(watched.now);
  watched.view.OnLost(watched.now);
  EXPECT_EQ(watched.view.ask_at(), TimePoint::max());
  watched.view.OnTrouble(watched.now);
  EXPECT_EQ(watched.view.ask_at(), TimePoint::max());
  watched.now += 1s;
  watched.Connect();
  EXPECT_EQ(watched.view.ask_at(), watched.now);
  EXPECT_EQ(watched.Reply(Epoch("1")), News::kNothing);
  EXPECT_EQ(watched.Master(), "-");
  EXPECT_EQ(watched.Round("b", "1"), News::kMaster);
  EXPECT_EQ(watched.Master(), "b:6379");
  EXPECT_EQ(watched.view.ask_at(), watched.now + SentinelView::kEvery);
}

TEST(SentinelViewTest, SendsRequestsRepeatedlyWhileMasterFails) {
  for (const int times : {1, 1000}) {
    std::chrono::nanoseconds sum = 0s;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Watched watched(Three(), seed * 77'777);
      watched.Connect();
      (void)watched.Round("a", "1");
      for (int i = 0; i < times; ++i) watched.view.OnTrouble(watched.now);
      const auto wait = watched.view.ask_at() - kStart;
      ASSERT_GE(wait, SentinelView::kAgain);
      ASSERT_LE(wait, SentinelView::kAgain * 3 / 2);
      sum += wait;
    }
    EXPECT_GT(sum / 200, 120ms) << times;
    EXPECT_LT(sum / 200, 130ms) << times;
  }
  Watched watched;
  watched.Connect();
  (void)watched.Round("a", "1");
  watched.now += 2s;
  watched.view.OnTrouble(watched.now);
  EXPECT_EQ(watched.view.ask_at(), watched.now);
  // The failure is remembered until the pending replies have arrived.
  watched.Ask();
  const TimePoint before = watched.now;
  watched.view.OnTrouble(watched.now);
  EXPECT_EQ(watched.view.ask_at(), TimePoint::max());
  for (const std::string& bytes : {Address("a"), Epoch("1"), kNone}) {
    EXPECT_EQ(watched.Reply(bytes), News::kNothing);
  }
  EXPECT_GE(watched.view.ask_at(), before + 100ms);
  EXPECT_LE(watched.view.ask_at(), before + 150ms);
  watched.view.OnWell();
  watched.now = watched.view.ask_at();
  (void)watched.Round("a", "1");
  EXPECT_EQ(watched.view.ask_at(), watched.now + SentinelView::kEvery);
  // After one OnTrouble() the view sends requests until OnWell(), to another sentinel each second
  // time, and less and less often.
  watched.view.OnTrouble(watched.now);
  const TimePoint began = watched.now;
  std::size_t questions = 0;
  for (; watched.now < began + 60s; ++questions) {
    if (watched.view.ask_at() == TimePoint::max()) {
      watched.now = std::max(watched.now, watched.view.connect_at());
      watched.Connect();
    }
    watched.now = std::max(watched.now, watched.view.ask_at());
    if (watched.Round("a", "1") == News::kUseless) watched.view.OnLost(watched.now);
  }
  EXPECT_GT(questions, 100U);
  EXPECT_LT(questions, 300U);
}

/// Sends random events and checks the invariants after each.
TEST(SentinelViewTest, HoldsInvariantsUnderRandomEvents) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Watched watched(Three(), seed);
    bool connected = false;
    int awaited = 0;
    int epoch_told = 0;
    int highest = -1;
    std::size_t behind = 0;
    bool troubled = false;
    std::string reply;         // Replies of this round, if no other event came between them.
    std::string master = "-";  // The expected master.
    bool pushed = false;       // A push arrived since the last request.
    TimePoint last = kStart - 1h;
    for (int event = 0; event < 500; ++event) {
      watched.now +=
          std::chrono::microseconds(random() % (random() % 16 == 0 ? 6'000'000 : 30'000));
      News news = News::kNothing;
      const std::string before = master;
      bool useless = false;
      const std::string host = "m" + std::to_string(random() % 4);
      switch (random() % 7) {
        case 0:
          if (connected || watched.now < watched.view.connect_at()) break;
          watched.Connect();
          connected = true;
          last = kStart - 1h;
          break;
        case 1:
          if (random() % 4 != 0) break;
          watched.view.OnLost(watched.now);
          connected = false;
          awaited = 0;
          break;
        case 2:
          watched.view.OnTrouble(watched.now);
          troubled = true;
          if (connected && awaited == 0) {
            ASSERT_LE(watched.view.ask_at(), std::max(watched.now, last + 5 * 100ms + 50ms));
          }
          break;
        case 3: {
          if (!connected || random() % 4 != 0) break;
          news = watched.Push(Switch("mymaster x 1 " + host + " 6379"));
          master = host + ":6379";
          reply.clear();
          pushed = true;
          break;
        }
        case 4:
          if (watched.now < watched.view.ask_at()) break;
          ASSERT_TRUE(connected && awaited == 0);
          // Requests are at least kAgain apart, except after a connection or a switch.
          ASSERT_TRUE(pushed || watched.now - last >= SentinelView::kAgain);
          last = watched.now;
          pushed = false;
          watched.Ask();
          awaited = 3;
          break;
        default:
          if (awaited == 0) break;
          switch (awaited--) {
            case 3:
              useless = random() % 10 == 0;
              reply = useless ? "" : host + ":6379";
              news = watched.Reply(useless ? kNull : Address(host));
              break;
            case 2:
              epoch_told = std::max(0, highest) + static_cast<int>(random() % 8 / 3) - 1;
              epoch_told = std::max(epoch_told, 0);
              news = watched.Reply(Epoch(std::to_string(epoch_told)));
              useless = epoch_told < highest && ++behind < watched.view.sentinels().size();
              if (!useless) {
                if (!reply.empty()) master = reply;
                highest = epoch_told;
                behind = 0;
                // This sentinel has named a failing master too often.
                useless = watched.view.problem().find("still reports") != std::string::npos;
                ASSERT_TRUE(!useless || troubled);
              }
              break;
            default: news = watched.Reply(Array({Other(host)}));
          }
          if (useless) {
            ASSERT_EQ(news, News::kUseless);
            ASSERT_FALSE(watched.view.problem().empty());
            watched.view.OnLost(watched.now);
            connected = false;
            awaited = 0;
          }
      }
      ASSERT_EQ(watched.Master(), master);
      ASSERT_EQ(news == News::kUseless, useless);
      ASSERT_EQ(news == News::kMaster, master != before);
      ASSERT_EQ(watched.view.ask_at() == TimePoint::max(), !connected || awaited > 0);
      if (connected && awaited == 0) {
        ASSERT_LE(watched.view.ask_at(), watched.now + SentinelView::kEvery);
      }
      if (!connected) {
        ASSERT_LE(watched.view.connect_at(), watched.now + Backoff::kCap);
      }
    }
  }
}

}  // namespace
}  // namespace tidegate::redis
