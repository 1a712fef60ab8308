// SPDX-License-Identifier: Apache-2.0
#include "store/redis/cluster_view.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "unit/store/redis/parsed_reply.hpp"

namespace tidegate::redis {
namespace {

using namespace std::chrono_literals;
using TimePoint = ClusterView::TimePoint;

const Endpoint kSource{.host = "source", .port = 7000};
constexpr TimePoint kStart{1000h};

std::string NodeReply(const std::string& host, std::int64_t port) {
  return Array({Bulk(host), Int(port), Bulk("0123456789abcdef")});
}
std::string Range(std::int64_t first, std::int64_t last, const std::string& node) {
  return Array({Int(first), Int(last), node});
}

bool HandleReply(ClusterView& view, const std::string& bytes, TimePoint now) {
  const ParsedReply reply(bytes);
  return view.OnSlots(*reply, kSource, now);
}

/// Returns the owner of a slot as `host:port`; `-` if it has none.
std::string Owner(const ClusterView& view, Slot slot) {
  const Endpoint* const owner = view.OwnerOf(slot);
  return owner == nullptr ? "-" : owner->Shown();
}

Redirect Moved(Slot slot, const std::string& host, std::uint16_t port = 7000) {
  return {Redirect::Kind::kMoved, slot, {.host = host, .port = port}};
}

std::string Half(const std::string& a, const std::string& b) {
  return Array({Range(0, 8191, NodeReply(a, 7000)), Range(8192, 16383, NodeReply(b, 7000))});
}

TEST(ClusterViewTest, ReadsOwnersOfSlots) {
  ClusterView view(1);
  EXPECT_FALSE(view.known());
  EXPECT_EQ(view.OwnerOf(0), nullptr);
  view.OnAsked(kStart);
  const std::string metadata = Many('%', {Bulk("hostname"), Bulk("x")});
  ASSERT_TRUE(HandleReply(
      view,
      Array({Array({Int(0), Int(99), Array({Bulk("10.0.0.1"), Int(6379), Bulk("id"), metadata}),
                    NodeReply("replica", 1), NodeReply("another", 2)}),
             Array({Int(100), Int(100), Array({Bulk("fd00::2"), Int(65535)})}),
             Range(200, 16383, NodeReply("10.0.0.1", 6379))}),
      kStart));
  EXPECT_TRUE(view.known());
  EXPECT_EQ(Owner(view, 0), "10.0.0.1:6379");
  EXPECT_EQ(Owner(view, 99), "10.0.0.1:6379");
  EXPECT_EQ(Owner(view, 100), "[fd00::2]:65535");
  EXPECT_EQ(Owner(view, 101), "-");
  EXPECT_EQ(Owner(view, 199), "-");
  EXPECT_EQ(Owner(view, 16383), "10.0.0.1:6379");
  EXPECT_EQ(view.Masters(), (std::vector<Endpoint>{{.host = "10.0.0.1", .port = 6379},
                                                   {.host = "fd00::2", .port = 65535}}));
}

TEST(ClusterViewTest, UsesHostOfReplyingNodeForUnknownHost) {
  for (const std::string& host :
       {std::string{"$-1\r\n"}, std::string{"_\r\n"}, Bulk(""), Bulk("?")}) {
    ClusterView view(1);
    ASSERT_TRUE(HandleReply(view, Array({Range(5, 5, Array({host, Int(7003)}))}), kStart)) << host;
    EXPECT_EQ(Owner(view, 5), "source:7003") << host;
  }
  // Over a Unix socket the host of the replying node is unknown.
  ClusterView view(1);
  const ParsedReply reply(Array({Range(5, 5, Array({Bulk(""), Int(7003)}))}));
  EXPECT_FALSE(view.OnSlots(*reply, {.path = "/run/redis.sock"}, kStart));
}

TEST(ClusterViewTest, PrefersLaterOfOverlappingRanges) {
  ClusterView view(1);
  ASSERT_TRUE(HandleReply(
      view, Array({Range(0, 100, NodeReply("a", 1)), Range(50, 60, NodeReply("b", 1))}), kStart));
  EXPECT_EQ(Owner(view, 49), "a:1");
  EXPECT_EQ(Owner(view, 50), "b:1");
  EXPECT_EQ(Owner(view, 60), "b:1");
  EXPECT_EQ(Owner(view, 61), "a:1");
}

TEST(ClusterViewTest, IgnoresMalformedReply) {
  const std::string good = Range(0, 100, NodeReply("new", 1));
  std::string too_many = "*16385\r\n";
  for (int i = 0; i < 16'385; ++i) too_many += Range(1, 1, NodeReply("new", 1));
  std::string too_much = "*5\r\n";
  for (int i = 0; i < 5; ++i) too_much += Range(0, 16'383, NodeReply("new", 1));
  for (const std::string& bytes :
       {Bulk("OK"),
        Int(1),
        std::string{"_\r\n"},
        std::string{"-ERR no\r\n"},
        Array({Int(1)}),
        Many('>', {good}),
        Array({good, Array({})}),
        Array({good, Array({Int(1), Int(2)})}),
        Array({good, Array({Bulk("1"), Int(2), NodeReply("a", 1)})}),
        Array({good, Array({Int(1), Bulk("2"), NodeReply("a", 1)})}),
        Array({good, Range(2, 1, NodeReply("a", 1))}),
        Array({good, Range(-1, 1, NodeReply("a", 1))}),
        Array({good, Range(0, 16'384, NodeReply("a", 1))}),
        Array({good, Range(16'384, 16'384, NodeReply("a", 1))}),
        Array({good, Range(1, 1, NodeReply("a", 0))}),
        Array({good, Range(1, 1, NodeReply("a", 65'536))}),
        Array({good, Range(1, 1, NodeReply("a", -1))}),
        Array({good, Range(1, 1, Bulk("a"))}),
        Array({good, Range(1, 1, Array({Bulk("a")}))}),
        Array({good, Range(1, 1, Array({Bulk("a"), Bulk("1")}))}),
        Array({good, Range(1, 1, Array({Int(1), Int(1)}))}),
        Array({good, Array({Int(1), Int(1), NodeReply("a", 1), Bulk("replica")})}),
        Array({good, Range(1, 1, NodeReply("a\nb", 1))}),
        Array({good, Range(1, 1, NodeReply("a b", 1))}),
        Array({good, Range(1, 1, NodeReply(std::string("\0", 1), 1))}),
        Array({good, Range(1, 1, NodeReply(std::string(254, 'a'), 1))}),
        too_many,
        too_much}) {
    ClusterView view(1);
    ASSERT_TRUE(HandleReply(view, Half("a", "b"), kStart));
    view.OnMoved(Moved(3, "c"), kStart);
    const std::uint64_t version = view.version();
    view.OnAsked(kStart + 1s);
    EXPECT_FALSE(HandleReply(view, bytes, kStart + 1s)) << bytes.substr(0, 100);
    EXPECT_EQ(view.version(), version);
    EXPECT_EQ(Owner(view, 0), "a:7000");
    EXPECT_EQ(Owner(view, 3), "c:7000");
    EXPECT_EQ(Owner(view, 16'383), "b:7000");
    EXPECT_EQ(view.Masters().size(), 3u);
    EXPECT_LE(view.due(), kStart + 1s + 2 * ClusterView::kLeast + ClusterView::kSoon);
  }
  ClusterView nothing(1);
  EXPECT_FALSE(HandleReply(nothing, Array({good, Int(1)}), kStart));
  EXPECT_FALSE(nothing.known());
  EXPECT_EQ(Owner(nothing, 0), "-");
}

TEST(ClusterViewTest, AcceptsClusterWithoutSlots) {
  ClusterView view(1);
  ASSERT_TRUE(HandleReply(view, "*0\r\n", kStart));
  EXPECT_TRUE(view.known());
  EXPECT_EQ(view.version(), 0u);
  ASSERT_TRUE(HandleReply(view, Half("a", "b"), kStart));
  EXPECT_EQ(view.version(), 1u);
  ASSERT_TRUE(HandleReply(view, "*0\r\n", kStart));
  EXPECT_EQ(view.version(), 2u);
  EXPECT_EQ(Owner(view, 0), "-");
  EXPECT_TRUE(view.Masters().empty());
}

TEST(ClusterViewTest, VersionGrowsOnlyWhenOwnersChange) {
  ClusterView view(1);
  ASSERT_TRUE(HandleReply(view, Half("a", "b"), kStart));
  EXPECT_EQ(view.version(), 1u);
  // The same owners as before, in other ranges and in another order.
  ASSERT_TRUE(HandleReply(
      view,
      Array({Range(8192, 9000, NodeReply("b", 7000)), Range(9001, 16383, NodeReply("b", 7000)),
             Range(0, 8191, NodeReply("a", 7000))}),
      kStart));
  EXPECT_EQ(view.version(), 1u);
  view.OnMoved(Moved(7, "a"), kStart);
  EXPECT_EQ(view.version(), 1u);
  view.OnMoved(Moved(7, "b"), kStart);
  EXPECT_EQ(view.version(), 2u);
  EXPECT_EQ(Owner(view, 7), "b:7000");
  EXPECT_EQ(Owner(view, 8), "a:7000");
  view.OnMoved(Moved(7, "b", 7001), kStart);
  EXPECT_EQ(view.version(), 3u);
  // A change of one slot in the middle, of the last slot, or of a slot without an owner is noticed.
  for (const auto& [first, last] : {std::pair{4000, 4000}, {16'383, 16'383}, {0, 0}}) {
    ASSERT_TRUE(HandleReply(view, Half("a", "b"), kStart));
    const std::uint64_t version = view.version();
    ASSERT_TRUE(HandleReply(
        view,
        Array({Range(0, 8191, NodeReply("a", 7000)), Range(8192, 16383, NodeReply("b", 7000)),
               Range(first, last, NodeReply("c", 7000))}),
        kStart));
    EXPECT_EQ(view.version(), version + 1) << first;
  }
}

TEST(ClusterViewTest, ForgetsUnusedNodes) {
  ClusterView view(1);
  constexpr int kUsed = 300;
  // More nodes than there are numbers for owners.
  for (int i = 0; i < 70'000; ++i) {
    const auto slot = static_cast<Slot>(i % kUsed * 50);
    view.OnMoved(Moved(slot, "n" + std::to_string(i)), kStart);
    ASSERT_EQ(Owner(view, slot), "n" + std::to_string(i) + ":7000");
  }
  for (int i = 70'000 - kUsed; i < 70'000; ++i) {
    const auto slot = static_cast<Slot>(i % kUsed * 50);
    ASSERT_EQ(Owner(view, slot), "n" + std::to_string(i) + ":7000");
  }
  EXPECT_EQ(Owner(view, 1), "-");
  EXPECT_EQ(view.Masters().size(), std::size_t{kUsed});
  EXPECT_EQ(view.version(), 70'000u);
  EXPECT_FALSE(view.known());
}

TEST(ClusterViewTest, SendsFirstRequestAtOnceAndLaterOnesRarely) {
  std::chrono::nanoseconds shortest = 1h;
  std::chrono::nanoseconds longest = 0s;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    ClusterView view(seed * 77'777);
    EXPECT_LE(view.due(), kStart);
    view.OnTrouble(kStart);
    EXPECT_LE(view.due(), kStart);
    view.OnAsked(kStart);
    EXPECT_EQ(view.due(), TimePoint::max());
    ASSERT_TRUE(HandleReply(view, Half("a", "b"), kStart + 1ms));
    shortest = std::min(shortest, view.due() - kStart);
    longest = std::max(longest, view.due() - kStart);
  }
  EXPECT_GE(shortest, 10s);
  EXPECT_LT(shortest, 10'500ms);
  EXPECT_GT(longest, 14'500ms);
  EXPECT_LE(longest, 15'001ms);
}

TEST(ClusterViewTest, SpreadsRequestsOfFleetAfterFailures) {
  const TimePoint now = kStart + 5s;
  for (const int troubles : {1, 1000}) {
    std::chrono::nanoseconds sum = 0s;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      ClusterView view(seed * 77'777);
      view.OnAsked(kStart);
      ASSERT_TRUE(HandleReply(view, Half("a", "b"), kStart));
      for (int i = 0; i < troubles; ++i) view.OnTrouble(now);
      ASSERT_GE(view.due(), now);
      ASSERT_LE(view.due(), now + ClusterView::kSoon);
      sum += view.due() - now;
    }
    EXPECT_GT(sum / 200, 20ms) << troubles;
    EXPECT_LT(sum / 200, 30ms) << troubles;
  }
}

/// A view whose requests for the slots are sent exactly when they are due.
struct RequestSchedule {
  explicit RequestSchedule(std::uint64_t seed) : view(seed) {
    view.OnAsked(now);
    EXPECT_TRUE(HandleReply(view, Half("a", "b"), now));
  }
  /// Sends the next request and returns the time since the last one.
  std::chrono::nanoseconds SendNext() {
    const TimePoint due = std::max(now, view.due());
    const auto apart = due - last;
    last = now = due;
    view.OnAsked(now);
    return apart;
  }
  ClusterView view;
  TimePoint now = kStart;
  TimePoint last = kStart;
};

TEST(ClusterViewTest, BacksOffWhileOwnersStayTheSame) {
  RequestSchedule schedule(3);
  // The interval doubles after each request, up to kMost.
  for (const auto apart : {100ms, 200ms, 400ms, 400ms, 400ms}) {
    schedule.view.OnTrouble(schedule.now);
    EXPECT_GE(schedule.SendNext(), apart);
    EXPECT_EQ(schedule.last, schedule.now);
    ASSERT_TRUE(HandleReply(schedule.view, Half("a", "b"), schedule.now));
    schedule.view.OnTrouble(schedule.now);
    EXPECT_LE(schedule.view.due() - schedule.last, std::min(2 * apart, 400ms));
  }
  // A changed owner resets the interval.
  schedule.SendNext();
  ASSERT_TRUE(HandleReply(schedule.view, Half("a", "c"), schedule.now));
  schedule.view.OnTrouble(schedule.now);
  EXPECT_EQ(schedule.SendNext(), 100ms);
  ASSERT_TRUE(HandleReply(schedule.view, Half("a", "c"), schedule.now));
  schedule.view.OnTrouble(schedule.now);
  EXPECT_EQ(schedule.SendNext(), 200ms);
  // A redirection while the request is pending resets the interval as well.
  schedule.view.OnMoved(Moved(1, "d"), schedule.now);
  ASSERT_TRUE(HandleReply(schedule.view, Half("a", "c"), schedule.now));
  EXPECT_EQ(schedule.SendNext(), 100ms);
}

TEST(ClusterViewTest, ResetsBackoffAfterQuietTime) {
  for (const auto& [quiet, apart] : {std::pair{14'999ms, 400ms}, {15'000ms, 100ms}}) {
    RequestSchedule schedule(3);
    for (int i = 0; i < 6; ++i) {
      schedule.view.OnTrouble(schedule.now);
      schedule.SendNext();
      ASSERT_TRUE(HandleReply(schedule.view, Half("a", "b"), schedule.now));
    }
    const TimePoint trouble = schedule.now;
    schedule.view.OnTrouble(trouble);
    schedule.SendNext();
    schedule.now = schedule.last = trouble + quiet;
    schedule.view.OnAsked(schedule.now);
    ASSERT_TRUE(HandleReply(schedule.view, Half("a", "b"), schedule.now));
    schedule.view.OnTrouble(schedule.now);
    EXPECT_EQ(schedule.SendNext(), apart) << quiet.count();
  }
}

TEST(ClusterViewTest, RequestsSlotsAgainAfterFailureOrMoveDuringRequest) {
  for (const bool moved : {false, true}) {
    RequestSchedule schedule(5);
    schedule.view.OnTrouble(schedule.now);
    schedule.SendNext();
    if (moved) {
      schedule.view.OnMoved(Moved(1, "c"), schedule.now);
    } else {
      schedule.view.OnTrouble(schedule.now);
    }
    EXPECT_EQ(schedule.view.due(), TimePoint::max());
    ASSERT_TRUE(HandleReply(schedule.view, Half("a", "b"), schedule.now + 1ms));
    EXPECT_LE(schedule.view.due(), schedule.now + 200ms);
    // One request is enough: the next one is not due for 10 s.
    schedule.SendNext();
    ASSERT_TRUE(HandleReply(schedule.view, Half("a", "b"), schedule.now));
    EXPECT_GE(schedule.view.due(), schedule.now + 10s);
  }
}

TEST(ClusterViewTest, RequestsSlotsAgainAfterFailedRequest) {
  for (const bool known : {false, true}) {
    for (const bool sent : {false, true}) {
      ClusterView view(9);
      TimePoint now = kStart;
      if (known) {
        ASSERT_TRUE(HandleReply(view, Half("a", "b"), now));
      }
      for (const auto apart : {200ms, 400ms, 400ms, 400ms}) {
        if (sent) view.OnAsked(now);
        view.OnAskFailed(now);
        EXPECT_EQ(view.due(), now + apart) << known << sent;
        now = view.due();
      }
      // If the failure of a request took a long time, the next one follows after a short random
      // pause.
      view.OnAsked(now);
      view.OnAskFailed(now + 3s);
      EXPECT_GE(view.due(), now + 3s);
      EXPECT_LE(view.due(), now + 3s + ClusterView::kSoon);
    }
  }
}

TEST(ClusterViewTest, FailedRequestsKeepLongestInterval) {
  ClusterView view(9);
  TimePoint now = kStart;
  for (int i = 0; i < 30; ++i, now = view.due()) {
    view.OnAsked(now);
    view.OnAskFailed(now);
  }
  view.OnTrouble(now);
  view.OnAsked(now);
  view.OnAskFailed(now);
  EXPECT_EQ(view.due(), now + ClusterView::kMost);
}

/// Compares the view with a map of owners while random events happen, and checks the promised
/// intervals.
TEST(ClusterViewTest, HoldsInvariantsUnderRandomEvents) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    ClusterView view(seed);
    std::map<int, std::string> owners;
    TimePoint now = kStart;
    TimePoint last{};
    bool schedule = false;
    std::uint64_t version = 0;
    const auto node = [&] { return "n" + std::to_string(random() % (seed % 3 == 0 ? 1000 : 6)); };
    for (int event = 0; event < 400; ++event) {
      const auto before = owners;
      now += std::chrono::microseconds(random() % (random() % 8 == 0 ? 4'000'000 : 40'000));
      bool wanted = false;
      switch (random() % 5) {
        case 0: {
          const std::string name = node();
          const auto slot = static_cast<Slot>(random() % 20);
          view.OnMoved(Moved(slot, name), now);
          owners[slot] = name + ":7000";
          wanted = true;
          break;
        }
        case 1:
          view.OnTrouble(now);
          wanted = true;
          break;
        case 2:
          if (now < view.due()) break;
          ASSERT_FALSE(schedule);
          ASSERT_GE(now - last, ClusterView::kLeast);
          last = now;
          schedule = true;
          view.OnAsked(now);
          break;
        case 3: {
          if (!schedule) break;
          schedule = false;
          const bool sense = random() % 4 != 0;
          const auto cut = static_cast<int>(random() % 19);
          const std::string a = node();
          const std::string b = node();
          const std::string tail = sense ? Range(cut + 1, 19, NodeReply(b, 7000)) : Int(3);
          ASSERT_EQ(HandleReply(view, Array({Range(0, cut, NodeReply(a, 7000)), tail}), now),
                    sense);
          for (int slot = 0; sense && slot < 20; ++slot) {
            owners[slot] = (slot <= cut ? a : b) + ":7000";
          }
          wanted = !sense;
          break;
        }
        default:
          if (!schedule) break;
          schedule = false;
          view.OnAskFailed(now);
          wanted = true;
      }
      for (int slot = 0; slot < 20; ++slot) {
        const auto at = owners.find(slot);
        ASSERT_EQ(Owner(view, static_cast<Slot>(slot)), at == owners.end() ? "-" : at->second);
      }
      ASSERT_EQ(Owner(view, 20), "-");
      ASSERT_EQ(view.version() > version, owners != before);
      version = view.version();
      ASSERT_EQ(view.due() == TimePoint::max(), schedule);
      if (!schedule) {
        ASSERT_LE(view.due(), now + ClusterView::kQuiet);
      }
      if (wanted && !schedule) {
        ASSERT_LE(view.due(), std::max(now + ClusterView::kSoon, last + ClusterView::kMost));
      }
    }
  }
}

}  // namespace
}  // namespace tidegate::redis
