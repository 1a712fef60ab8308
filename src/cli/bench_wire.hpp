// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cli/server_address.hpp"

namespace tidegate::cli {

/// A server's response to one request of a bench.
struct BenchResponse {
  bool allowed = false;
  int status = 0;                    ///< The HTTP status; 0 with RESP.
  std::string_view decided_by = {};  ///< Empty if not reported. Valid until the next call.
  std::string fatal_error = {};  ///< Not empty: no decision, and further requests will fail too.
  bool last = false;             ///< The server closes the connection after this response.
};

/// Writes the requests and parses the responses of one connection as bytes. Does no I/O.
class BenchWire {
 public:
  enum class Progress : std::uint8_t { kResponse, kMore, kMalformed };
  virtual ~BenchWire() = default;
  /// Appends the bytes to send before the first request. Next skips the reply to them.
  virtual void AddGreeting(std::string& out) = 0;
  virtual void AddRequest(std::string_view identity, std::string& out) = 0;
  virtual void Feed(std::string_view bytes) = 0;
  [[nodiscard]] virtual Progress Next(BenchResponse& response) = 0;
  /// Drops the state of the old connection, because a new one begins.
  virtual void Reset() = 0;
};

/// Returns a wire whose requests are `POST /v1/decide`.
[[nodiscard]] std::unique_ptr<BenchWire> MakeHttpWire(const ServerAddress& address,
                                                      std::string_view rule,
                                                      std::string_view token);
/// Returns a wire whose requests are `TG.DECIDE`.
[[nodiscard]] std::unique_ptr<BenchWire> MakeRespWire(std::string_view rule,
                                                      std::string_view token);

}  // namespace tidegate::cli
