// SPDX-License-Identifier: Apache-2.0
#include "cli/response.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/units.hpp"
#include "cli/console.hpp"

namespace tidegate::cli {

namespace json = boost::json;

namespace {

/// Overrides are stale after three refreshes: one may be late, three missed ones are an outage.
constexpr std::chrono::milliseconds kMaxAge{3000};

/// Returns the matches in brackets: `(/a/** | POST x.example.com)`.
std::string MatchTexts(const std::vector<JsonView>& matches) {
  std::string text;
  for (const JsonView& match : matches) text += (text.empty() ? "" : " | ") + MatchText(match);
  return "(" + text + ")";
}

bool IsConfigured(const JsonView& entry) { return entry.Text("from") == "configuration"; }

/// Returns the kind, operator and reason of an override that an operator made.
std::string OperatorText(const JsonView& entry) {
  std::string text = OverrideKind(entry);
  if (!entry.Text("by").empty()) text += " by " + entry.Text("by");
  if (!entry.Text("reason").empty()) text += ": " + entry.Text("reason");
  return text;
}

/// Returns the verdict of a rule that was not evaluated because of an override of this or another
/// key.
Cell OverrideVerdict(const JsonView& rule) {
  const JsonView override = rule.Object("override");
  const std::string kind = override.Text("kind");
  const std::string by = IsConfigured(override) ? "by the configuration" : "by an operator";
  if (kind == "allow") return {"allows, uncounted: " + by, Style::kGood};
  // A ban applies in shadow mode as well, because it names this one key.
  if (kind == "ban") return {"banned " + by, Style::kBad};
  return {"not evaluated", Style::kQuiet};
}

std::string RemainingText(const JsonView& rule) {
  const JsonView before = rule.Object("before");
  if (!before.Has("remaining")) return {};
  std::string text = Count(before.Int("remaining"));
  // The share of a node is less than the capacity.
  if (before.Has("of") || rule.Has("capacity")) {
    text += " of " + Count(before.Has("of") ? before.Int("of") : rule.Int("capacity"));
  }
  text += " left";
  // `after` equals `before` if another rule denies the request, because nothing is charged then.
  const JsonView after = rule.Object("after");
  if (rule.Bool("allowed") && after.Has("remaining") &&
      after.Int("remaining") != before.Int("remaining")) {
    text += ", " + Count(after.Int("remaining")) + " after the request";
  }
  return text;
}

}  // namespace

double AsNumber(const json::value& value) {
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  return value.is_double() ? value.get_double() : 0;
}

std::int64_t AsInt(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(AsNumber(value), -9e18, 9e18));
}

std::string AsText(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_null()) return {};
  std::string text;
  const auto add = [&](const std::string& element) {
    text += (text.empty() ? "" : ", ") + element;
  };
  if (value.is_array()) {
    for (const json::value& element : value.get_array()) add(AsText(element));
  } else if (value.is_object()) {
    for (const auto& member : value.get_object()) {
      add(std::string(member.key()) + ": " + AsText(member.value()));
    }
  } else {
    return json::serialize(value);
  }
  return text;
}

const json::object& JsonView::All() const {
  static const json::object kNone;
  return object_ == nullptr ? kNone : *object_;
}

const json::value& JsonView::At(std::string_view name) const {
  static const json::value kNull;
  const json::value* const value = All().if_contains(name);
  return value == nullptr ? kNull : *value;
}

bool JsonView::Bool(std::string_view name) const {
  const json::value& value = At(name);
  return value.is_bool() && value.get_bool();
}

std::chrono::milliseconds JsonView::Ms(std::string_view name) const {
  // The result fits into microseconds, because callers convert it to print it.
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 1000;
  return std::chrono::milliseconds{std::clamp<std::int64_t>(Int(name), 0, kMost)};
}

const json::array& JsonView::Array(std::string_view name) const {
  static const json::array kNone;
  const json::array* const array = At(name).if_array();
  return array == nullptr ? kNone : *array;
}

std::vector<JsonView> JsonView::Objects(std::string_view name) const {
  const json::array& array = Array(name);
  return {array.begin(), array.end()};
}

std::string QuotaOf(const JsonView& entry) {
  return entry.Text(entry.Has("quota") ? "quota" : "limit");
}

std::string MatchText(const JsonView& match) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view label) {
    const std::string value = match.Text(name);
    if (value.empty()) return;
    text += (text.empty() ? "" : " ") + std::string(label) + value;
  };
  for (const std::string_view name : {"method", "host", "path", "header"}) add(name, "");
  add("client_ip", "from ");
  for (const std::string_view name : {"any", "not"}) {
    const std::vector<JsonView> matches = match.Objects(name);
    if (matches.empty()) continue;
    text += (text.empty() ? "" : " ") + std::string(name) + " " + MatchTexts(matches);
  }
  return text.empty() ? "everything" : text;
}

std::string OverrideKind(const JsonView& entry) {
  std::string kind = entry.Text("kind");
  return kind == "quota" ? "quota " + QuotaOf(entry) : kind;
}

std::string OverrideText(const JsonView& entry) {
  if (IsConfigured(entry)) {
    const bool quota = entry.Text("kind") == "quota";
    return "by the configuration: " + (quota ? QuotaOf(entry) : OverrideKind(entry));
  }
  return OperatorText(entry) +
         (entry.Has("left_ms") ? "; " + Span(entry.Ms("left_ms")) + " left" : "; until lifted");
}

std::string EndedOverrideText(const JsonView& entry) {
  if (IsConfigured(entry) || !entry.Has("expires_ms")) return OverrideText(entry);
  return OperatorText(entry) + ", until " + TimeStamp(entry.Int("expires_ms"));
}

Freshness Freshness::Of(const JsonView& overrides) {
  Freshness freshness;
  freshness.known = !overrides.Has("known") || overrides.Bool("known");
  if (overrides.Has("age_ms")) freshness.age = overrides.Ms("age_ms");
  return freshness;
}

bool Freshness::good() const noexcept { return known && (!age || *age <= kMaxAge); }

std::string Freshness::Text() const {
  if (!known) return "not known: Redis has not answered since the start";
  return age ? "as of " + Span(*age) + " ago" : std::string{};
}

bool StoreIsHealthy(const JsonView& store) {
  const bool closed = !store.Has("breaker") || store.Text("breaker") == "closed";
  return closed && store.Int("connected") == store.Int("nodes");
}

std::string LastErrorText(const JsonView& error) {
  std::string text = "last error " + error.Text("reason");
  if (error.Has("age_ms")) text += " " + Span(error.Ms("age_ms")) + " ago";
  if (!error.Text("message").empty()) text += ": " + error.Text("message");
  return text;
}

bool DecidedByPolicy(const JsonView& rule) {
  const std::string decided_by = rule.Text("decided_by");
  return decided_by == "local" || decided_by == "open" || decided_by == "closed";
}

std::string StoreFailureText(const JsonView& decision) {
  const std::string reason = decision.Text("reason");
  return "the store does not answer" + (reason.empty() ? "" : " (" + reason + ")");
}

std::string RetryText(const JsonView& decision) {
  if (decision.Bool("never"))
    return ", and the request can never pass: the cost is above the limit";
  if (!decision.Has("retry_after_ms")) return {};
  return ", try again in " + FormatDuration(decision.Ms("retry_after_ms"));
}

Cell VerdictOf(const JsonView& rule) {
  if (!rule.Has("allowed")) return OverrideVerdict(rule);
  const bool allowed = rule.Bool("allowed");
  const bool shadow = rule.Text("mode") == "shadow";
  const bool policy = DecidedByPolicy(rule);
  std::string text;
  if (policy) {
    text = StoreFailureText(rule) + ", and the policy is " + rule.Text("decided_by") + ": ";
  }
  text += shadow ? (allowed ? "would allow" : "would deny") : (allowed ? "allows" : "denies");
  if (rule.Text("decided_by") == "local") text += " by this node's share";
  const std::string remaining = RemainingText(rule);
  if (!remaining.empty()) text += (policy ? ", " : ": ") + remaining;
  // Red is for certain denials: a shadow rule denies no request, and a policy may decide otherwise.
  const bool uncertain = allowed ? policy : shadow;
  return {text + RetryText(rule), uncertain ? Style::kWarning
                                  : allowed ? Style::kGood
                                            : Style::kBad};
}

std::string LatencyBound::Text() const { return (beyond ? "> " : "") + Seconds(seconds); }

LatencyBuckets LatencyBuckets::Of(const JsonView& latency) {
  LatencyBuckets read;
  std::int64_t highest = 0;
  for (const auto& entry : latency.Array("buckets")) {
    if (!entry.is_array() || entry.get_array().size() != 2) continue;
    const auto& bucket = entry.get_array();
    const double end =
        bucket[0].is_null() ? std::numeric_limits<double>::infinity() : AsNumber(bucket[0]);
    highest = std::max(highest, AsInt(bucket[1]));  // Cumulative, whatever the server sent.
    read.buckets_.emplace_back(end, highest);
  }
  return read;
}

LatencyBuckets LatencyBuckets::Since(const LatencyBuckets& before) const {
  if (before.buckets_.size() != buckets_.size() || before.count() > count()) return *this;
  LatencyBuckets difference = *this;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    difference.buckets_[i].second -= before.buckets_[i].second;
    if (difference.buckets_[i].second < 0) return *this;
  }
  return difference;
}

std::optional<LatencyBound> LatencyBuckets::Quantile(double q) const {
  if (count() == 0) return std::nullopt;
  const double wanted = std::max(1.0, std::ceil(q * static_cast<double>(count())));
  double last = 0;
  for (const auto& [end, up_to] : buckets_) {
    if (!std::isfinite(end)) break;
    last = end;
    if (static_cast<double>(up_to) >= wanted) return LatencyBound{end};
  }
  return LatencyBound{last, true};
}

}  // namespace tidegate::cli
