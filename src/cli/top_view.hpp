// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/latency_buckets.hpp"
#include "cli/top_sample.hpp"

namespace tidegate::cli {

enum class HotBy : std::uint8_t { kRequests, kDenials, kCost };
[[nodiscard]] std::string_view Name(HotBy by) noexcept;  ///< `requests`, `denials`, `cost`.

/// What `tidegate top` shows. Texts are as the server sent them.
struct View {
  struct Latency {
    std::optional<LatencyBound> p50 = {};  ///< None where nothing was asked.
    std::optional<LatencyBound> p99 = {};
  };
  struct Store {
    std::string kind = {};
    std::string mode = {};
    std::string breaker = {};  ///< Empty: there is none, as of the memory store.
    std::int64_t connected = 0;
    std::int64_t nodes = 0;
    std::int64_t waiting = 0;
    Latency latency = {};
    std::string trouble = {};  ///< Why it last failed, if it still fails or just did.

    [[nodiscard]] bool well() const {
      return connected == nodes && (breaker.empty() || breaker == "closed");
    }
  };
  struct Fleet {
    std::int64_t nodes = 0;
    std::int64_t key_mismatches = 0;
  };
  struct Named {
    std::string name = {};
    double rate = 0;
  };
  struct Rule {
    std::string name = {};
    std::string limit = {};
    std::string algorithm = {};
    std::string mode = {};
    double allowed = 0;  ///< A second, as all rates.
    double denied = 0;
  };
  struct Key {
    std::string rule = {};
    std::string key = {};
    std::int64_t count = 0;
    std::int64_t error = 0;
  };
  struct Hot {
    std::int64_t total = 0;
    std::vector<Key> keys = {};
  };

  std::string server = {};  ///< Who is asked.
  bool answered = false;    ///< Else nothing below is known but `problem`.
  std::chrono::milliseconds wall = {};
  /// What rates are over; 0: there was one answer only, and rates are of the time since its start.
  std::chrono::milliseconds interval = {};

  std::string version = {};
  std::string node = {};
  std::chrono::milliseconds uptime = {};
  std::int64_t threads = 0;
  std::int64_t overrides = 0;
  bool overrides_known = true;  ///< False: their store has never answered.
  bool draining = false;
  Store store = {};
  std::optional<Fleet> fleet = {};

  /// Requests that were decided, each once; none if the server does not report them.
  std::optional<double> requests = {};
  double denied_requests = 0;
  double decisions = 0;              ///< One for each rule that decided a request.
  double denied = 0;                 ///< With `banned`.
  std::vector<Named> outcomes = {};  ///< Others that are not 0: `banned`, `shadow_denied`, ...
  std::vector<Named> sources = {};
  std::vector<Named> failures = {};  ///< Those that are not 0.
  Latency latency = {};
  std::vector<Rule> rules = {};           ///< By rate, the highest first.
  Hot hot[3] = {};                        ///< By HotBy.
  std::chrono::milliseconds window = {};  ///< Of `hot`.

  HotBy by = HotBy::kRequests;
  bool paused = false;
  std::string problem = {};               ///< Why there is no newer answer; empty: there is.
  std::chrono::milliseconds silent = {};  ///< Then, since when.
};

/// What `now` shows, with rates since `before`. A server that was started anew in between counts
/// from zero.
[[nodiscard]] View ViewOf(const TopSample* before, const TopSample& now);

/// For --json: the rates, and what the server said.
[[nodiscard]] boost::json::object JsonOf(const View& view, const TopSample& now);

}  // namespace tidegate::cli
