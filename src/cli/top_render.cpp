// SPDX-License-Identifier: Apache-2.0
#include "cli/top_view.hpp"

#include <algorithm>
#include <span>

#include "cli/console.hpp"
#include "cli/response.hpp"

namespace tidegate::cli {
namespace {

/// One line, cut to the columns of the screen.
class Line {
 public:
  Line(int columns, Colours colours)
      : room_(static_cast<std::size_t>(std::max(columns, 0))), colours_(colours) {}

  Line& Put(std::string_view foreign, Style style = Style::kPlain) {
    const std::string text = Clipped(Shown(foreign), room_);
    room_ -= WidthOf(text);
    text_ += Styled(text, style, colours_);
    return *this;
  }
  /// Puts text into a column of `width`, followed by two blanks.
  Line& Left(std::string_view foreign, std::size_t width, Style style = Style::kPlain) {
    const std::string text = Clipped(Shown(foreign), width);
    return Put(text, style).Put(std::string(width - WidthOf(text) + 2, ' '));
  }
  Line& Right(std::string_view foreign, std::size_t width, Style style = Style::kPlain) {
    const std::string text = Clipped(Shown(foreign), width);
    return Put(std::string(width - WidthOf(text), ' ')).Put(text, style).Put("  ");
  }
  [[nodiscard]] std::string Text() && {
    text_.erase(text_.find_last_not_of(' ') + 1);
    return std::move(text_);
  }

 private:
  std::size_t room_;
  Colours colours_;
  std::string text_;
};

class Page {
 public:
  Page(const View& view, Size size, Colours colours)
      : view_(view), status_(view.status), size_(size), colours_(colours) {}

  std::vector<std::string> Lines() {
    Title();
    if (!view_.problem.empty()) Problem();
    if (!view_.status.empty()) {
      Store();
      Rates();
      DecidedBy();
      Tables();
    }
    const auto rows = static_cast<std::size_t>(std::max(size_.rows, 0));
    if (rows == 0) return std::move(lines_);
    const bool keys = rows >= 4;  // With fewer rows, the view needs them all.
    lines_.resize(keys ? rows - 1 : rows);
    if (keys) {
      Add(New().Put("q quit  p pause  r d c hot keys by requests, denials, cost", Style::kQuiet));
    }
    return std::move(lines_);
  }

 private:
  [[nodiscard]] Line New() const { return {size_.columns, colours_}; }
  void Add(Line& line) { lines_.push_back(std::move(line).Text()); }

  void Title() {
    Line line = New();
    if (view_.status.empty()) {
      Add(line.Put("tidegate", Style::kStrong).Put("  at " + view_.server));
      return;
    }
    line.Put("tidegate " + status_.Text("version"), Style::kStrong);
    if (view_.paused) line.Put("  paused", Style::kWarning);
    if (status_.Bool("draining")) line.Put("  draining", Style::kWarning);
    const JsonView fleet = status_.Object("fleet");
    line.Put("  node " + status_.Text("node") +
             (fleet.empty() ? "" : " of " + Count(fleet.Int("nodes"))) + "  up " +
             Span(status_.Ms("uptime_ms")) + "  " + Plural(status_.Int("threads"), "thread"));
    const JsonView overrides = status_.Object("overrides");
    if (!Freshness::Of(overrides).known) {
      line.Put("  overrides not known", Style::kWarning);
    } else if (overrides.Int("count") > 0) {
      line.Put("  " + Plural(overrides.Int("count"), "override"));
    }
    line.Put("  " + TimeStamp(view_.wall.count()), Style::kQuiet);
    Add(line);
  }

  void Problem() {
    Add(New().Put("no answer for " +
                      Span(std::chrono::floor<std::chrono::seconds>(view_.since_answer)) + ": " +
                      view_.problem,
                  Style::kBad));
  }

  static void PutLatency(Line& line, const View::Latency& latency) {
    if (!latency.p50 || !latency.p99) return;
    line.Put("  p50 " + latency.p50->Text() + "  p99 " + latency.p99->Text());
  }

  void Store() {
    const JsonView store = status_.Object("store");
    const bool healthy = StoreIsHealthy(store);
    Line line = New();
    line.Put("store   ", Style::kQuiet)
        .Put(store.Text("kind") + (store.Has("mode") ? " " + store.Text("mode") : ""));
    if (store.Has("breaker")) {
      const std::string breaker = store.Text("breaker");
      line.Put("  connected ")
          .Put(Count(store.Int("connected")) + " of " + Count(store.Int("nodes")),
               store.Int("connected") == store.Int("nodes") ? Style::kGood : Style::kBad);
      line.Put("  breaker ").Put(breaker, breaker == "closed" ? Style::kGood : Style::kBad);
      line.Put("  waiting " + Count(store.Int("waiting")));
      PutLatency(line, view_.store_latency);
    }
    const std::int64_t mismatches = status_.Object("fleet").Int("key_mismatches");
    if (mismatches > 0) line.Put("  nodes with another HMAC key " + Count(mismatches), Style::kBad);
    // The error comes last, because it is the longest. `tidegate status` shows older errors.
    const JsonView error = store.Object("last_error");
    if (!error.empty() && (!healthy || error.Ms("age_ms") < std::chrono::minutes{1})) {
      line.Put("  " + LastErrorText(error), healthy ? Style::kWarning : Style::kBad);
    }
    Add(line);
  }

  void Rates() {
    Line line = New();
    const std::string decisions = Rate(view_.decisions) + " decisions/s";
    const double all = view_.requests.value_or(view_.decisions);
    const double denied = view_.requests ? view_.denied_requests : view_.denied;
    line.Put("rates   ", Style::kQuiet)
        .Put(view_.requests ? Rate(all) + " requests/s" : decisions, Style::kStrong);
    if (view_.interval.count() == 0) line.Put(" since its start", Style::kQuiet);
    line.Put("  denied ")
        .Put(Rate(denied) + "/s (" + Share(denied, all) + ")",
             denied > 0 ? Style::kBad : Style::kPlain);
    for (const View::Named& outcome : view_.outcomes) {
      line.Put("  " + outcome.name + " " + Rate(outcome.rate) + "/s");
    }
    PutLatency(line, view_.latency);
    // The decisions come last, because on a narrow terminal the latency matters more.
    if (view_.requests) line.Put("  " + decisions);
    Add(line);
  }

  void DecidedBy() {
    Line line = New();
    line.Put("decided by ", Style::kQuiet);
    for (const View::Named& decided_by : view_.sources) {
      // Red is for failure policies. Decisions by operators are intended.
      const bool policy =
          decided_by.name == "local" || decided_by.name == "open" || decided_by.name == "closed";
      line.Put("  " + decided_by.name + " ");
      line.Put(Rate(decided_by.rate) + "/s",
               policy && decided_by.rate > 0 ? Style::kBad : Style::kPlain);
    }
    for (const View::Named& failure : view_.failures) {
      line.Put("  " + failure.name + " " + Rate(failure.rate) + "/s", Style::kBad);
    }
    Add(line);
  }

  /// Both tables share the rows that are left: neither takes more than half if the other needs it.
  void Tables() {
    const JsonView hot = JsonView(view_.hot).Object(Name(view_.by));
    const std::vector<JsonView> hot_keys = hot.Objects("keys");
    std::size_t rules = view_.rules.size();
    std::size_t keys = hot_keys.size();
    if (size_.rows == 0) keys = std::min<std::size_t>(keys, 10);  // `tidegate hot` lists all.
    if (size_.rows > 0) {
      // Counts the other lines: blank, heads, blank, title, heads, and the line about keys.
      const auto used = lines_.size() + 6;
      const auto rows = static_cast<std::size_t>(size_.rows);
      const std::size_t left = rows > used ? rows - used : 0;
      const std::size_t half = left / 2;
      if (rules + keys > left) {
        rules = std::min(rules, std::max(left - half, left - std::min(left, keys)));
        keys = std::min(keys, left - rules);
      }
    }
    Rules(rules);
    HotKeys(hot, {hot_keys.data(), keys});
  }

  void Rules(std::size_t count) {
    std::size_t width = 4;
    std::size_t limit = 5;
    for (std::size_t i = 0; i < count; ++i) {
      width = std::max(width, WidthOf(Shown(view_.rules[i].name)));
      limit = std::max(limit, std::min<std::size_t>(WidthOf(Shown(view_.rules[i].limit)), 22));
    }
    // 35 columns of numbers follow the name, and matter more than it.
    const auto columns = static_cast<std::size_t>(std::max(size_.columns, 0));
    width = std::min(width, std::max<std::size_t>(columns > 35 ? columns - 35 : 0, 8));
    lines_.emplace_back();
    Line heads = New();
    heads.Left("RULE", width, Style::kQuiet).Right("ALLOWED/S", 10, Style::kQuiet);
    heads.Right("DENIED/S", 10, Style::kQuiet).Right("DENIED", 7, Style::kQuiet);
    heads.Left("QUOTA", limit, Style::kQuiet).Left("ALGORITHM", 14, Style::kQuiet);
    Add(heads.Put("MODE", Style::kQuiet));
    for (const View::Rule& rule : std::span(view_.rules).first(count)) {
      const Style style = rule.denied > 0 ? Style::kBad : Style::kPlain;
      Line line = New();
      line.Left(rule.name, width, Style::kStrong).Right(Rate(rule.allowed), 10);
      line.Right(Rate(rule.denied), 10, style);
      line.Right(Share(rule.denied, rule.allowed + rule.denied), 7, style);
      line.Left(rule.limit, limit).Left(rule.algorithm, 14);
      Add(line.Put(rule.mode, rule.mode == "shadow" ? Style::kWarning : Style::kPlain));
    }
    if (count < view_.rules.size() && count > 1) {
      lines_.pop_back();
      const auto more = static_cast<std::int64_t>(view_.rules.size() - count + 1);
      Add(New().Put("... and " + Count(more) + " more rules", Style::kQuiet));
    }
  }

  void HotKeys(const JsonView& hot, std::span<const JsonView> keys) {
    std::size_t width = 4;
    for (const JsonView& key : keys) {
      width = std::max(width, std::min<std::size_t>(WidthOf(Shown(key.Text("rule"))), 24));
    }
    lines_.emplace_back();
    Add(New()
            .Put("HOT KEYS", Style::kStrong)
            .Put(" by ")
            .Put(Name(view_.by), Style::kStrong)
            .Put(" in the last " + Span(JsonView(view_.hot).Ms("window_ms")) + ", of " +
                 Count(hot.Int("total"))));
    Line heads = New();
    heads.Right("COUNT", 12, Style::kQuiet).Right("SHARE", 7, Style::kQuiet);
    Add(heads.Left("RULE", width, Style::kQuiet).Put("KEY", Style::kQuiet));
    for (const JsonView& key : keys) {
      Line line = New();
      line.Right(Count(key.Int("count")), 12);
      line.Right(Share(key.Number("count"), hot.Number("total")), 7);
      Add(line.Left(key.Text("rule"), width).Put(key.Text("key")));
    }
  }

  const View& view_;
  const JsonView status_;
  const Size size_;
  const Colours colours_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> Render(const View& view, Size size, Colours colours) {
  return Page(view, size, colours).Lines();
}

}  // namespace tidegate::cli
