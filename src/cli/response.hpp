// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console.hpp"

namespace tidegate::cli {

/// Return the value as a number; 0 if it is not a number.
[[nodiscard]] double AsNumber(const boost::json::value& value);
[[nodiscard]] std::int64_t AsInt(const boost::json::value& value);
/// Returns the value as a person would write it: strings without quotes, lists with commas.
[[nodiscard]] std::string AsText(const boost::json::value& value);

/// A JSON object that a server sent. Servers of other versions may omit any member or change its
/// type: a member that is absent, null or of another type is 0, empty or false. Does not own the
/// object.
class JsonView {
 public:
  JsonView() = default;
  explicit JsonView(const boost::json::object& object) : object_(&object) {}
  explicit JsonView(const boost::json::value& value) : object_(value.if_object()) {}

  /// Returns true if the member is present and not null.
  [[nodiscard]] bool Has(std::string_view name) const { return !At(name).is_null(); }
  [[nodiscard]] std::int64_t Int(std::string_view name) const { return AsInt(At(name)); }
  [[nodiscard]] double Number(std::string_view name) const { return AsNumber(At(name)); }
  [[nodiscard]] std::string Text(std::string_view name) const { return AsText(At(name)); }
  [[nodiscard]] bool Bool(std::string_view name) const;
  [[nodiscard]] std::chrono::milliseconds Ms(std::string_view name) const;
  [[nodiscard]] JsonView Object(std::string_view name) const { return JsonView(At(name)); }
  [[nodiscard]] const boost::json::array& Array(std::string_view name) const;
  /// Returns the elements of an array of objects.
  [[nodiscard]] std::vector<JsonView> Objects(std::string_view name) const;
  [[nodiscard]] bool empty() const { return All().empty(); }

  [[nodiscard]] auto begin() const { return All().begin(); }
  [[nodiscard]] auto end() const { return All().end(); }

 private:
  [[nodiscard]] const boost::json::object& All() const;
  /// Returns the member; null if it is absent.
  [[nodiscard]] const boost::json::value& At(std::string_view name) const;

  const boost::json::object* object_ = nullptr;
};

// Functions that return parts of the admin API's answers as text. The text is foreign: see Shown.

/// Returns the quota of a rule, a key or an override as the server describes it: `100/s, burst 200`
/// or `2 at once, lease 30s`. Older servers report only its limit.
[[nodiscard]] std::string QuotaOf(const JsonView& entry);

/// Returns the conditions of a rule or an entry in the order in which a request is read:
/// `GET, POST api.example.com /v1/** not (/v1/health)`.
[[nodiscard]] std::string MatchText(const JsonView& match);

/// Returns `ban`, `allow` or `quota 5,000/s, burst 200`.
[[nodiscard]] std::string OverrideKind(const JsonView& entry);
/// Returns the override on one line: `ban by alice: scraping; 59 min 59 s left`, or
/// `by the configuration: 5000/s, burst 10,000`.
[[nodiscard]] std::string OverrideText(const JsonView& entry);
/// Returns an override that has ended: `ban by alice: scraping, until 2024-01-31 09:05:07Z`.
[[nodiscard]] std::string EndedOverrideText(const JsonView& entry);

/// The age of a node's copy of the fleet's overrides. A node reads them from Redis once a second,
/// and keeps the known ones if Redis does not answer.
struct Freshness {
  bool known = true;                                  ///< False: Redis has never answered.
  std::optional<std::chrono::milliseconds> age = {};  ///< nullopt: the node has no fleet.

  /// Reads `/v1/overrides`, or `overrides` in `/v1/status`.
  [[nodiscard]] static Freshness Of(const JsonView& overrides);
  /// Returns true if the overrides are known and were confirmed in the last three seconds.
  [[nodiscard]] bool good() const noexcept;
  /// Returns `as of 40 s ago`, or that the overrides are not known; empty if the node has no fleet.
  [[nodiscard]] std::string Text() const;
};

/// Returns true if `store` in `/v1/status` has all connections, and no open breaker.
[[nodiscard]] bool StoreIsHealthy(const JsonView& store);
/// Returns why the store last failed: `last error wrongpass 1 s ago: WRONGPASS invalid user...`.
[[nodiscard]] std::string LastErrorText(const JsonView& error);

/// Returns the outcome of one matched rule of an explanation.
[[nodiscard]] Cell VerdictOf(const JsonView& rule);

/// Returns `the store does not answer (timeout)`, with the reason of a decision that a failure
/// policy made.
[[nodiscard]] std::string StoreFailureText(const JsonView& decision);
/// Returns `, try again in 2 s`, or why that is of no use; empty if the decision says neither.
[[nodiscard]] std::string RetryText(const JsonView& decision);

/// Returns true if a failure policy decided for this rule, because the store did not answer.
[[nodiscard]] bool DecidedByPolicy(const JsonView& rule);

/// A quantile, as exact as the buckets permit.
struct LatencyBound {
  double seconds = 0;
  bool beyond = false;  ///< The quantile is above `seconds`, the end of the last bucket.

  [[nodiscard]] std::string Text() const;  ///< `128 us`, `> 8.19 s`

  friend bool operator==(const LatencyBound&, const LatencyBound&) = default;
};

/// A histogram of latencies with cumulative buckets, as a server reports it.
class LatencyBuckets {
 public:
  LatencyBuckets() = default;
  /// Reads `{"count":...,"buckets":[[seconds,count],...,[null,count]]}`.
  [[nodiscard]] static LatencyBuckets Of(const JsonView& latency);

  /// Returns the counts since `before`, or all counts if `before` is not an earlier state of them.
  [[nodiscard]] LatencyBuckets Since(const LatencyBuckets& before) const;
  [[nodiscard]] std::int64_t count() const noexcept {
    return buckets_.empty() ? 0 : buckets_.back().second;
  }
  /// Returns the end of the bucket that contains the quantile; nullopt if there are no counts.
  [[nodiscard]] std::optional<LatencyBound> Quantile(double q) const;

 private:
  /// Upper bounds in seconds (the last is infinity), and the number of durations up to each.
  std::vector<std::pair<double, std::int64_t>> buckets_;
};

}  // namespace tidegate::cli
