// SPDX-License-Identifier: Apache-2.0
// Tests of `tidegate top`: from a server's reports to the lines of the screen, without a server and
// without a terminal.
#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <expected>

#include "cli/console.hpp"
#include "cli/top_view.hpp"

namespace tidegate::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
namespace json = boost::json;

constexpr TopModel::Instant kStart{1000s};

json::object Parsed(const std::string& text) { return json::parse(text).as_object(); }

/// Returns the reports of a server that has run for `seconds` with a hundred decisions per second,
/// twenty of which were denials.
TopSample At(int seconds, const std::string& node = "n1") {
  const std::string n = std::to_string(seconds);
  const auto times = [&](int each) { return std::to_string(seconds * each); };
  TopSample sample;
  sample.at = kStart + std::chrono::seconds(seconds);
  sample.wall = 1706691907000ms + std::chrono::seconds(seconds);
  sample.status = Parsed(
      R"({"version":"0.1.0","node":")" + node + R"(","uptime_ms":)" + times(1000) +
      R"(,"threads":2,"draining":false,"store":{"kind":"redis","mode":"single","connected":1,"nodes":2,
          "breaker":"open","waiting":1234,"latency":{"buckets":[[0.000064,)" +
      times(90) + R"(],[0.000512,)" + times(100) + R"(],[null,)" + times(100) +
      R"(]]}},"fleet":{"nodes":3,"key_mismatches":0},"overrides":{"count":2},
      "requests":{"allowed":)" +
      times(30) + R"(,"denied":)" + times(10) + R"(},"decisions":{"allowed":)" + times(80) +
      R"(,"denied":)" + times(15) + R"(,"banned":)" + times(5) + R"(},"decided_by":{"store":)" +
      times(80) + R"(,"cache":)" + times(15) + R"(,"open":0,"operator":)" + times(5) +
      R"(},"failures":{"timeout":)" + n + R"(},
      "latency":{"buckets":[[0.000002,)" +
      times(99) + R"(],[0.001,)" + times(100) + R"(]]}})");
  sample.rules = Parsed(
      R"({"rules":[{"rule":"slow","limit":"5/m","algorithm":"sliding_log","mode":"shadow",
        "decisions":{"allowed":)" +
      n + R"(,"denied":0}},
      {"rule":"per-key","limit":"100/s","algorithm":"token_bucket","mode":"enforce",
        "decisions":{"allowed":)" +
      times(80) + R"(,"denied":)" + times(20) + R"(}}]})");
  sample.hot = Parsed(
      R"({"window_ms":14000,"requests":{"total":1000,"keys":[
          {"rule":"per-key","key":"header:x-api-key=~k3Jx0","count":400,"error":1},
          {"rule":"per-key","key":"evil\u001b[2Jkey\u009b","count":100,"error":0}]},
      "denials":{"total":50,"keys":[{"rule":"per-key","key":"the-denied-one","count":50,"error":0}]},
      "cost":{"total":9,"keys":[]}})");
  return sample;
}

View ViewOfTwo() {
  TopModel model("127.0.0.1:9180", kStart);
  model.OnAnswer(At(10));
  model.OnAnswer(At(12));
  return model.ViewAt(kStart + 12s);
}

std::string Screenful(const View& view, Size size = {.rows = 30, .columns = 100}) {
  std::string text;
  for (const std::string& line : Render(view, size, Colours::kOff)) text += line + "\n";
  return text;
}

TEST(TopViewTest, ShowsRatesBetweenTwoSamples) {
  const View view = ViewOfTwo();
  EXPECT_EQ(view.interval, 2s);
  EXPECT_DOUBLE_EQ(view.decisions, 100);
  EXPECT_DOUBLE_EQ(view.denied, 20);
  ASSERT_EQ(view.rules.size(), 2u);
  EXPECT_EQ(view.rules[0].name, "per-key") << "the busiest rule is not listed first";
  EXPECT_DOUBLE_EQ(view.rules[0].allowed, 80);
  EXPECT_DOUBLE_EQ(view.rules[0].denied, 20);
  EXPECT_EQ(view.latency.p50, LatencyBound{0.000002});
  EXPECT_EQ(view.store_latency.p99, LatencyBound{0.000512});
}

TEST(TopViewTest, ShowsRatesSinceStartForOneSample) {
  const TopSample now = At(10);
  const View view = ViewOf(nullptr, now);
  EXPECT_EQ(view.interval, 0s);
  EXPECT_DOUBLE_EQ(view.decisions, 100);
  EXPECT_THAT(Screenful(view), HasSubstr("since its start"));
}

TEST(TopViewTest, CountsFromZeroAfterRestart) {
  const TopSample before = At(100);
  EXPECT_DOUBLE_EQ(ViewOf(&before, At(2)).decisions, 100);
  EXPECT_DOUBLE_EQ(ViewOf(&before, At(102, "other")).decisions, 100);
  EXPECT_EQ(ViewOf(&before, At(102, "other")).interval, 0s);
}

TEST(TopViewTest, IgnoresMembersOfWrongType) {
  TopSample sample;
  sample.status = Parsed(R"({"store":7,"decisions":[],"decided_by":null,"latency":{"buckets":3}})");
  sample.rules = Parsed(R"({"rules":[1,{},{"rule":5}]})");
  sample.hot = Parsed(R"({"requests":{"keys":{}}})");
  const View view = ViewOf(&sample, sample);
  EXPECT_EQ(view.decisions, 0);
  EXPECT_FALSE(Screenful(view).empty());
}

TEST(TopViewTest, PrintsRatesAsJson) {
  const TopSample before = At(10);
  const TopSample now = At(12);
  const json::object object = JsonOf(ViewOf(&before, now));
  EXPECT_EQ(object.at("interval_ms"), 2000);
  EXPECT_EQ(object.at("requests_per_s"), 40.0);
  EXPECT_EQ(object.at("denied_requests_per_s"), 10.0);
  EXPECT_EQ(object.at("decisions_per_s"), 100.0);
  EXPECT_EQ(object.at("rules").as_array().size(), 2u);
  EXPECT_EQ(object.at("status"), json::value(now.status));
}

TEST(TopRenderTest, ShowsDecisionsWithoutRequestCounts) {
  TopModel model("127.0.0.1:9180", kStart);
  for (const int seconds : {10, 12}) {
    TopSample sample = At(seconds);
    sample.status.erase("requests");
    model.OnAnswer(std::move(sample));
  }
  const View view = model.ViewAt(kStart + 12s);
  EXPECT_THAT(Screenful(view), HasSubstr("rates   100 decisions/s  denied 20/s (20.0%)  banned"));
  EXPECT_TRUE(JsonOf(view).at("requests_per_s").is_null());
}

TEST(TopRenderTest, ShowsAllPartsOfScreen) {
  const std::string text = Screenful(ViewOfTwo());
  EXPECT_THAT(text, StartsWith("tidegate 0.1.0  node n1 of 3  up 12 s  2 threads  2 overrides  "
                               "2024-01-31 09:05:19Z\n"));
  EXPECT_THAT(text, HasSubstr("redis single  connected 1 of 2  breaker open  waiting 1,234  "
                              "p50 64 us  p99 512 us\n"));
  EXPECT_THAT(text, HasSubstr("rates   40 requests/s  denied 10/s (25.0%)  banned 5.0/s  "
                              "p50 2.0 us  p99 2.0 us  100 decisions/s"));
  EXPECT_THAT(
      text,
      HasSubstr("decided by   store 80/s  cache 15/s  open 0/s  operator 5.0/s  timeout 1.0/s"));
  EXPECT_THAT(text, HasSubstr("RULE      ALLOWED/S    DENIED/S   DENIED  QUOTA  ALGORITHM       "
                              "MODE\n"
                              "per-key          80          20    20.0%  100/s  token_bucket    "
                              "enforce\n"
                              "slow            1.0           0     0.0%  5/m    sliding_log     "
                              "shadow\n"));
  EXPECT_THAT(text, HasSubstr("HOT KEYS by requests in the last 14 s, of 1,000\n"));
  EXPECT_THAT(text, HasSubstr("         400    40.0%  per-key  header:x-api-key=~k3Jx0\n"));
  EXPECT_THAT(text, HasSubstr("\nq quit  p pause"));
}

TEST(TopRenderTest, ShowsLastErrorOfStore) {
  const auto line = [](const std::string& age, const char* breaker) {
    TopSample sample = At(10);
    json::object& store = sample.status["store"].as_object();
    store["connected"] = store["nodes"];
    store["breaker"] = breaker;
    store["last_error"] =
        Parsed(R"({"reason":"wrongpass","message":"WRONGPASS\u001b no","age_ms":)" + age + "}");
    return Screenful(ViewOf(nullptr, sample), {.rows = 30, .columns = 160});
  };
  const std::string text = "last error wrongpass 2 min 3 s ago: WRONGPASS\\x1b no\n";
  EXPECT_THAT(line("123000", "open"), HasSubstr(text));
  EXPECT_THAT(line("123000", "closed"), Not(HasSubstr("wrongpass")))
      << "an error that is over is still shown";
  EXPECT_THAT(line("59000", "closed"), HasSubstr("last error wrongpass 59 s ago"));
}

TEST(TopRenderTest, PrintsThatOverridesAreUnknown) {
  TopSample sample = At(10);
  sample.status["overrides"] = Parsed(R"({"count":0,"known":false})");
  EXPECT_THAT(Screenful(ViewOf(nullptr, sample)), HasSubstr("  overrides not known  "));
}

TEST(TopRenderTest, EscapesTextFromServer) {
  const std::string text = Screenful(ViewOfTwo());
  EXPECT_THAT(text, HasSubstr("evil\\x1b[2Jkey\\u{9b}"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

json::array& HotKeysOf(View& view) {
  return view.hot.at("requests").as_object().at("keys").as_array();
}

json::object HotKeyNamed(const std::string& key) {
  return {{"rule", "rule"}, {"key", key}, {"count", 1}, {"error", 0}};
}

/// Returns `line` without its escape codes for colours.
std::string Bare(std::string line) {
  for (std::size_t at; (at = line.find('\x1b')) != std::string::npos;) {
    line.erase(at, line.find('m', at) - at + 1);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

TEST(TopRenderTest, FitsTerminalsOfAnySize) {
  View view = ViewOfTwo();
  for (int i = 0; i < 40; ++i) {
    view.rules.push_back({.name = "a-rule-with-a-long-name-" + std::to_string(i)});
    HotKeysOf(view).push_back(HotKeyNamed("\u4e2d\u6587\u4e2d\u6587" + std::string(100, 'k')));
  }
  view.problem = "it has gone";
  for (int rows = 1; rows <= 50; ++rows) {
    for (const int columns : {1, 2, 3, 7, 10, 20, 35, 40, 79, 80, 120, 300}) {
      const Size size{.rows = rows, .columns = columns};
      const auto plain = Render(view, size, Colours::kOff);
      const auto coloured = Render(view, size, Colours::kOn);
      EXPECT_EQ(plain.size(), static_cast<std::size_t>(rows));
      ASSERT_EQ(coloured.size(), plain.size());
      for (std::size_t i = 0; i < plain.size(); ++i) {
        EXPECT_LE(WidthOf(plain[i]), static_cast<std::size_t>(columns)) << plain[i];
        EXPECT_EQ(Bare(coloured[i]), plain[i]);
      }
    }
  }
}

TEST(TopRenderTest, DividesTerminalRowsBetweenTables) {
  View view = ViewOfTwo();
  for (int i = 0; i < 40; ++i) {
    view.rules.push_back({.name = "rule-" + std::to_string(i)});
    HotKeysOf(view).push_back(HotKeyNamed("key-" + std::to_string(i)));
  }
  const auto lines = Render(view, {.rows = 24, .columns = 80}, Colours::kOff);
  ASSERT_EQ(lines.size(), 24u);
  const std::string text = Screenful(view, {.rows = 24, .columns = 80});
  EXPECT_THAT(text, HasSubstr("more rules"));
  EXPECT_THAT(text, HasSubstr("key-4"));
  EXPECT_THAT(lines.back(), StartsWith("q quit"));
  // A table also uses the rows that the other table does not need.
  HotKeysOf(view).clear();
  EXPECT_THAT(Screenful(view, {.rows = 24, .columns = 80}), HasSubstr("rule-9"));
}

TEST(TopRenderTest, ShowsAllRulesWithoutRowLimit) {
  View view = ViewOfTwo();
  for (int i = 0; i < 100; ++i) view.rules.push_back({.name = "rule-" + std::to_string(i)});
  const std::string text = Screenful(view, {.rows = 0, .columns = 1000});
  EXPECT_THAT(text, HasSubstr("rule-99"));
  EXPECT_THAT(text, Not(HasSubstr("q quit")));
}

TEST(TopModelTest, KeyPressSelectsListOfHotKeys) {
  TopModel model("s", kStart);
  model.OnAnswer(At(10));
  EXPECT_EQ(model.OnKey('d'), TopModel::Next::kStay);
  EXPECT_THAT(Screenful(model.ViewAt(kStart)), HasSubstr("the-denied-one"));
  EXPECT_EQ(model.OnKey('c'), TopModel::Next::kStay);
  EXPECT_THAT(Screenful(model.ViewAt(kStart)), HasSubstr("by cost"));
  EXPECT_EQ(model.OnKey('r'), TopModel::Next::kStay);
  EXPECT_THAT(Screenful(model.ViewAt(kStart)), HasSubstr("by requests"));
  EXPECT_EQ(model.OnKey('x'), TopModel::Next::kStay);
  EXPECT_EQ(model.OnKey('q'), TopModel::Next::kQuit);
}

TEST(TopModelTest, KeepsViewUnchangedWhilePaused) {
  TopModel model("s", kStart);
  model.OnAnswer(At(10));
  (void)model.OnKey('p');
  model.OnAnswer(At(12));
  EXPECT_EQ(JsonView(model.ViewAt(kStart).status).Ms("uptime_ms"), 10s);
  EXPECT_THAT(Screenful(model.ViewAt(kStart)), HasSubstr("  paused  "));
  (void)model.OnKey('p');
  model.OnAnswer(At(13));
  EXPECT_EQ(JsonView(model.ViewAt(kStart).status).Ms("uptime_ms"), 13s);
  EXPECT_EQ(model.ViewAt(kStart).interval, 1s);
}

TEST(TopModelTest, ShowsHowLongServerDidNotAnswer) {
  TopModel model("127.0.0.1:9180", kStart);
  model.OnAnswer(std::unexpected(CommandError{kNoAnswer, "no server listens there"}));
  std::string text = Screenful(model.ViewAt(kStart + 3500ms));
  EXPECT_THAT(text, StartsWith("tidegate  at 127.0.0.1:9180\n"
                               "no answer for 3 s: no server listens there\n"));
  model.OnAnswer(At(10));
  EXPECT_THAT(Screenful(model.ViewAt(kStart + 10s)), Not(HasSubstr("no answer")));
  model.OnAnswer(std::unexpected(CommandError{kNoAnswer, "gone"}));
  text = Screenful(model.ViewAt(kStart + 15s));
  EXPECT_THAT(text, HasSubstr("no answer for 5 s: gone\n"));
  EXPECT_THAT(text, HasSubstr("per-key")) << "the last view is no longer shown";
}

}  // namespace
}  // namespace tidegate::cli
