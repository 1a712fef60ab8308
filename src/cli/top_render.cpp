// SPDX-License-Identifier: Apache-2.0
#include "cli/top_render.hpp"

#include <algorithm>

#include "cli/human.hpp"
#include "cli/shown_text.hpp"

namespace tidegate::cli {
namespace {

/// One line that takes no more than fits.
class Line {
 public:
  Line(int columns, Colours colours)
      : room_(static_cast<std::size_t>(std::max(columns, 0))), colours_(colours) {}

  Line& Put(std::string_view foreign, Ink ink = Ink::kPlain) {
    const std::string text = Clipped(Shown(foreign), room_);
    room_ -= WidthOf(text);
    text_ += Inked(text, ink, colours_);
    return *this;
  }
  /// In a column of its own, and two blanks behind it.
  Line& Left(std::string_view foreign, std::size_t width, Ink ink = Ink::kPlain) {
    const std::string text = Clipped(Shown(foreign), width);
    return Put(text, ink).Put(std::string(width - WidthOf(text) + 2, ' '));
  }
  Line& Right(std::string_view foreign, std::size_t width, Ink ink = Ink::kPlain) {
    const std::string text = Clipped(Shown(foreign), width);
    return Put(std::string(width - WidthOf(text), ' ')).Put(text, ink).Put("  ");
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
      : view_(view), size_(size), colours_(colours) {}

  std::vector<std::string> Lines() {
    Title();
    if (!view_.problem.empty()) Problem();
    if (view_.answered) {
      Store();
      Rates();
      DecidedBy();
      Tables();
    }
    const auto rows = static_cast<std::size_t>(std::max(size_.rows, 0));
    if (rows == 0) return std::move(lines_);
    const bool keys = rows >= 4;  // Of fewer lines each is worth more.
    lines_.resize(keys ? rows - 1 : rows);
    if (keys) {
      Add(New().Put("q quit  p pause  r d c hot keys by requests, denials, cost", Ink::kQuiet));
    }
    return std::move(lines_);
  }

 private:
  [[nodiscard]] Line New() const { return {size_.columns, colours_}; }
  void Add(Line& line) { lines_.push_back(std::move(line).Text()); }

  void Title() {
    Line line = New();
    if (!view_.answered) {
      Add(line.Put("tidegate", Ink::kStrong).Put("  at " + view_.server));
      return;
    }
    line.Put("tidegate " + view_.version, Ink::kStrong);
    if (view_.paused) line.Put("  paused", Ink::kWarning);
    if (view_.draining) line.Put("  draining", Ink::kWarning);
    line.Put("  node " + view_.node + (view_.fleet ? " of " + Count(view_.fleet->nodes) : "") +
             "  up " + Span(view_.uptime) + "  " + Plural(view_.threads, "thread"));
    if (!view_.overrides_known) {
      line.Put("  overrides not known", Ink::kWarning);
    } else if (view_.overrides > 0) {
      line.Put("  " + Plural(view_.overrides, "override"));
    }
    line.Put("  " + TimeStamp(view_.wall.count()), Ink::kQuiet);
    Add(line);
  }

  void Problem() {
    Add(New().Put("no answer for " + Span(std::chrono::floor<std::chrono::seconds>(view_.silent)) +
                      ": " + view_.problem,
                  Ink::kBad));
  }

  void PutLatency(Line& line, const View::Latency& latency) const {
    if (!latency.p50 || !latency.p99) return;
    line.Put("  p50 " + latency.p50->Text() + "  p99 " + latency.p99->Text());
  }

  void Store() {
    const View::Store& store = view_.store;
    Line line = New();
    line.Put("store   ", Ink::kQuiet)
        .Put(store.kind + (store.mode.empty() ? "" : " " + store.mode));
    if (!store.breaker.empty()) {
      line.Put("  connected ")
          .Put(Count(store.connected) + " of " + Count(store.nodes),
               store.connected == store.nodes ? Ink::kGood : Ink::kBad);
      line.Put("  breaker ").Put(store.breaker, store.breaker == "closed" ? Ink::kGood : Ink::kBad);
      line.Put("  waiting " + Count(store.waiting));
      PutLatency(line, store.latency);
    }
    if (view_.fleet && view_.fleet->key_mismatches > 0) {
      line.Put("  nodes with another key " + Count(view_.fleet->key_mismatches), Ink::kBad);
    }
    // Last, since it is the longest: what does not fit is cut.
    if (!store.trouble.empty()) {
      line.Put("  " + store.trouble, store.well() ? Ink::kWarning : Ink::kBad);
    }
    Add(line);
  }

  void Rates() {
    Line line = New();
    const std::string decisions = Rate(view_.decisions) + " decisions/s";
    const double all = view_.requests.value_or(view_.decisions);
    const double denied = view_.requests ? view_.denied_requests : view_.denied;
    line.Put("rates   ", Ink::kQuiet)
        .Put(view_.requests ? Rate(all) + " requests/s" : decisions, Ink::kStrong);
    if (view_.interval.count() == 0) line.Put(" since its start", Ink::kQuiet);
    line.Put("  denied ")
        .Put(Rate(denied) + "/s (" + Share(denied, all) + ")",
             denied > 0 ? Ink::kBad : Ink::kPlain);
    for (const View::Named& outcome : view_.outcomes) {
      line.Put("  " + outcome.name + " " + Rate(outcome.rate) + "/s");
    }
    PutLatency(line, view_.latency);
    // Last: on a narrow terminal the latency matters more.
    if (view_.requests) line.Put("  " + decisions);
    Add(line);
  }

  void DecidedBy() {
    Line line = New();
    line.Put("decided by ", Ink::kQuiet);
    for (const View::Named& decided_by : view_.sources) {
      // Red is for failure policies. What an operator decided is as intended.
      const bool policy =
          decided_by.name == "local" || decided_by.name == "open" || decided_by.name == "closed";
      line.Put("  " + decided_by.name + " ");
      line.Put(Rate(decided_by.rate) + "/s",
               policy && decided_by.rate > 0 ? Ink::kBad : Ink::kPlain);
    }
    for (const View::Named& failure : view_.failures) {
      line.Put("  " + failure.name + " " + Rate(failure.rate) + "/s", Ink::kBad);
    }
    Add(line);
  }

  /// Both tables share what rows are left: neither takes more than half while the other needs it.
  void Tables() {
    const View::Hot& hot = view_.hot[static_cast<std::size_t>(view_.by)];
    std::size_t rules = view_.rules.size();
    std::size_t keys = hot.keys.size();
    if (size_.rows == 0) keys = std::min<std::size_t>(keys, 10);  // `tidegate hot` has them all.
    if (size_.rows > 0) {
      // Blank, heads, blank, title, heads, and the line about keys.
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
    HotKeys(hot, keys);
  }

  void Rules(std::size_t count) {
    std::size_t width = 4;
    std::size_t limit = 5;
    for (std::size_t i = 0; i < count; ++i) {
      width = std::max(width, WidthOf(Shown(view_.rules[i].name)));
      limit = std::max(limit, std::min<std::size_t>(WidthOf(Shown(view_.rules[i].limit)), 22));
    }
    // 35 columns of numbers stand behind the name: those are what one came for.
    const auto columns = static_cast<std::size_t>(std::max(size_.columns, 0));
    width = std::min(width, std::max<std::size_t>(columns > 35 ? columns - 35 : 0, 8));
    lines_.emplace_back();
    Line heads = New();
    heads.Left("RULE", width, Ink::kQuiet).Right("ALLOWED/S", 10, Ink::kQuiet);
    heads.Right("DENIED/S", 10, Ink::kQuiet).Right("DENIED", 7, Ink::kQuiet);
    heads.Left("QUOTA", limit, Ink::kQuiet).Left("ALGORITHM", 14, Ink::kQuiet);
    Add(heads.Put("MODE", Ink::kQuiet));
    for (std::size_t i = 0; i < count; ++i) {
      const View::Rule& rule = view_.rules[i];
      const Ink ink = rule.denied > 0 ? Ink::kBad : Ink::kPlain;
      Line line = New();
      line.Left(rule.name, width, Ink::kStrong).Right(Rate(rule.allowed), 10);
      line.Right(Rate(rule.denied), 10, ink);
      line.Right(Share(rule.denied, rule.allowed + rule.denied), 7, ink);
      line.Left(rule.limit, limit).Left(rule.algorithm, 14);
      Add(line.Put(rule.mode, rule.mode == "shadow" ? Ink::kWarning : Ink::kPlain));
    }
    if (count < view_.rules.size() && count > 1) {
      lines_.back() =
          std::move(New().Put("... and " +
                                  Count(static_cast<std::int64_t>(view_.rules.size() - count + 1)) +
                                  " more rules",
                              Ink::kQuiet))
              .Text();
    }
  }

  void HotKeys(const View::Hot& hot, std::size_t count) {
    std::size_t width = 4;
    for (std::size_t i = 0; i < count; ++i) {
      width = std::max(width, std::min<std::size_t>(WidthOf(Shown(hot.keys[i].rule)), 24));
    }
    lines_.emplace_back();
    Line title = New();
    title.Put("HOT KEYS", Ink::kStrong).Put(" by ").Put(Name(view_.by), Ink::kStrong);
    title.Put(" in the last " + Span(view_.window) + ", of " + Count(hot.total));
    Add(title);
    Line heads = New();
    heads.Right("COUNT", 12, Ink::kQuiet).Right("SHARE", 7, Ink::kQuiet);
    Add(heads.Left("RULE", width, Ink::kQuiet).Put("KEY", Ink::kQuiet));
    for (std::size_t i = 0; i < count; ++i) {
      const View::Key& key = hot.keys[i];
      Line line = New();
      line.Right(Count(key.count), 12);
      line.Right(Share(static_cast<double>(key.count), static_cast<double>(hot.total)), 7);
      Add(line.Left(key.rule, width).Put(key.key));
    }
  }

  const View& view_;
  const Size size_;
  const Colours colours_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> Render(const View& view, Size size, Colours colours) {
  return Page(view, size, colours).Lines();
}

}  // namespace tidegate::cli
