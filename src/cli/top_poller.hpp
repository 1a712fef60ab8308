// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <thread>

#include "cli/top_sample.hpp"
#include "net/descriptor.hpp"

namespace tidegate::cli {

/// Asks a server at a steady pace on a thread of its own, so that keys work while it keeps silent.
/// The destructor does not wait for an answer.
class TopPoller {
 public:
  TopPoller(AdminClient client, Micros every);
  ~TopPoller();
  TopPoller(const TopPoller&) = delete;
  TopPoller& operator=(const TopPoller&) = delete;

  /// Readable: there is something to take.
  [[nodiscard]] int ready() const noexcept { return ready_.get(); }
  /// The newest answer, once.
  [[nodiscard]] std::optional<Asked<TopSample>> Take();

 private:
  void Run();

  AdminClient client_;
  const Micros every_;
  net::Descriptor ready_;
  net::Descriptor stop_;
  std::mutex mutex_;
  std::optional<Asked<TopSample>> newest_;
  std::thread thread_;
};

}  // namespace tidegate::cli
