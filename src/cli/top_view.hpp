// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/admin_client.hpp"
#include "cli/response.hpp"
#include "telemetry/hot_keys.hpp"

namespace tidegate::cli {

/// The reports of a server at one time.
struct TopSample {
  std::chrono::steady_clock::time_point at = {};
  std::chrono::milliseconds wall = {};  ///< The time since the epoch.
  boost::json::object status = {};
  boost::json::object rules = {};
  boost::json::object hot = {};
};

/// Requests all three reports, one after the other.
[[nodiscard]] CommandResult<TopSample> TakeSample(const AdminClient& client);

/// The content of `tidegate top`. Texts are as the server sent them.
struct View {
  struct Latency {
    std::optional<LatencyBound> p50 = {};  ///< nullopt if there were no calls.
    std::optional<LatencyBound> p99 = {};
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
    double allowed = 0;  ///< Per second, like all rates.
    double denied = 0;
  };

  std::string server = {};          ///< The address of the server.
  boost::json::object status = {};  ///< From `/v1/status`; empty: only `problem` is set.
  boost::json::object hot = {};     ///< From `/v1/hot`.
  std::chrono::milliseconds wall = {};
  /// The time that the rates cover; 0: there is only one sample, and they cover the uptime.
  std::chrono::milliseconds interval = {};

  /// Requests that were decided, each once; nullopt if the server does not report them.
  std::optional<double> requests = {};
  double denied_requests = 0;
  double decisions = 0;              ///< One for each rule that decided a request.
  double denied = 0;                 ///< Includes the outcome `banned`.
  std::vector<Named> outcomes = {};  ///< Other outcomes above 0: `banned`, `shadow_denied`, ...
  std::vector<Named> sources = {};
  std::vector<Named> failures = {};  ///< The failures whose rate is not 0.
  Latency latency = {};
  Latency store_latency = {};
  std::vector<Rule> rules = {};  ///< Sorted by rate, the highest first.

  HotBy by = HotBy::kRequests;
  bool paused = false;
  std::string problem = {};  ///< Why the last poll failed; empty: it succeeded.
  std::chrono::milliseconds since_answer = {};
};

/// Returns the view of `now`, with rates since `before` or since a restart of the server.
[[nodiscard]] View ViewOf(const TopSample* before, const TopSample& now);

/// Returns the rates and the reports of the server, for --json.
[[nodiscard]] boost::json::object JsonOf(const View& view);

/// The state of `tidegate top`: takes answers and keys, returns views. Uses no clock, no terminal.
class TopModel {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  enum class Next : std::uint8_t { kStay, kQuit };

  TopModel(std::string server, Instant start) : server_(std::move(server)), answered_at_(start) {}

  void OnAnswer(CommandResult<TopSample> answer);
  [[nodiscard]] Next OnKey(char key);
  [[nodiscard]] View ViewAt(Instant now) const;
  /// Returns the newest sample; nullptr if there is none.
  [[nodiscard]] const TopSample* sample() const { return now_ ? &*now_ : nullptr; }

 private:
  std::string server_;
  Instant answered_at_;  ///< When the last answer arrived.
  std::optional<TopSample> now_;
  View view_;
  std::string problem_;
  HotBy by_ = HotBy::kRequests;
  bool paused_ = false;
};

struct Size {
  int rows = 24;  ///< 0: as many as are needed, and no line of key commands.
  int columns = 80;
};

/// Returns the view as lines of printable text: one for each row, none wider than the columns. The
/// bottom is cut if it does not fit.
[[nodiscard]] std::vector<std::string> Render(const View& view, Size size, Colours colours);

}  // namespace tidegate::cli
