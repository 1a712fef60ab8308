// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/top_view.hpp"

namespace tidegate::cli {

/// What `tidegate top` knows: answers and keys come in, a view goes out. No clock, no terminal.
class TopModel {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  enum class Next : std::uint8_t { kStay, kQuit };

  TopModel(std::string server, Instant start) : server_(std::move(server)), heard_(start) {}

  void OnAnswer(Asked<TopSample> answer);
  [[nodiscard]] Next OnKey(char key);
  [[nodiscard]] View ViewAt(Instant now) const;
  /// The newest; nullptr: there was none.
  [[nodiscard]] const TopSample* sample() const { return now_ ? &*now_ : nullptr; }

 private:
  std::string server_;
  Instant heard_;  ///< When the last answer came.
  std::optional<TopSample> now_;
  View view_;
  std::string problem_;
  HotBy by_ = HotBy::kRequests;
  bool paused_ = false;
};

}  // namespace tidegate::cli
