// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tidegate/decision.hpp"

namespace tidegate {

/// Holds requests until they are allowed or their deadlines have passed; those of one key pass in
/// the order of their arrival. A state machine without threads and clocks: the owner locks it,
/// passes the time, and calls the callbacks that it returns after it has unlocked.
class WaitQueue {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Callback = std::function<void(const Decision&)>;
  struct Request {
    std::string key;
    std::int64_t cost;
    TimePoint deadline;
    Callback done;
  };
  using Answers = std::vector<std::pair<Callback, Decision>>;

  /// Charges the request if it fits now.
  using Check = std::function<Decision(std::string_view key, std::int64_t cost)>;
  explicit WaitQueue(Check check) : check_(std::move(check)) {}

  /// Adds a request behind the other requests of its key.
  void Add(Request request, TimePoint now, Answers& answers);
  /// Tries the requests that are due.
  void Run(TimePoint now, Answers& answers);
  /// Returns when Run must be called next; nothing if no request waits.
  [[nodiscard]] std::optional<TimePoint> next() const noexcept {
    return due_.empty() ? std::nullopt : std::optional(due_.begin()->first);
  }
  /// Denies all requests that wait.
  void Clear(Answers& answers);

 private:
  struct Waiting {
    Request request;
    std::uint64_t id;
    TimePoint due{};    ///< The next attempt if it is the first of its key, otherwise its deadline.
    Decision denial{};  ///< The last decision on the request.
  };
  using Line = std::deque<Waiting>;  ///< The requests of one key.

  /// Tries the first requests of a line until one has to wait.
  void Advance(const std::string& key, TimePoint now, Answers& answers);
  void Schedule(Waiting& waiting, TimePoint due);
  void Answer(Line& line, const Line::iterator& which, const Decision& decision, Answers& answers);

  const Check check_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::string, Line> lines_;
  std::set<std::pair<TimePoint, std::pair<std::uint64_t, std::string>>> due_;
};

}  // namespace tidegate
