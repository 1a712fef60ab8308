// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "cli/admin_client.hpp"

namespace tidegate::cli {

struct BenchOptions {
  AskOptions ask = {};    ///< The API.
  std::string resp = {};  ///< Instead: the RESP door.
  std::string rule = {};
  std::int64_t identities = 1000;
  double zipf = 0;         ///< 0: all as likely.
  bool addresses = false;  ///< Identities are IPv4 addresses rather than names.
  int connections = 16;
  int threads = 1;
  int pipeline = 1;  ///< Of the RESP door.
  Micros lasting = std::chrono::seconds{5};
  double rate = 0;  ///< A second; 0: as many as are answered.
};

/// `tidegate bench`: loads a running server and tells what came of it. Returns an exit code: kUsage
/// or kNoAnswer where there was no decision at all.
[[nodiscard]] int Bench(const BenchOptions& options, const Console& console);

}  // namespace tidegate::cli
