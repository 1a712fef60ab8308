// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cli/server_address.hpp"

namespace tidegate::cli {

/// What a server answered to one question of a bench.
struct BenchAnswer {
  bool allowed = false;
  int status = 0;                    ///< Of HTTP; else 0.
  std::string_view decided_by = {};  ///< Empty: it said none. Valid until the next call.
  std::string mistake = {};  ///< Not empty: no decision, and the next answer would be the same.
  bool last = false;         ///< The server closes the connection after it.
};

/// Questions and answers as bytes of one connection. No I/O.
class BenchWire {
 public:
  enum class Progress : std::uint8_t { kAnswer, kMore, kGarbage };
  virtual ~BenchWire() = default;
  /// What is sent before the first question; its reply is not an answer.
  virtual void AddGreeting(std::string& out) = 0;
  virtual void AddQuestion(std::string_view identity, std::string& out) = 0;
  virtual void Feed(std::string_view bytes) = 0;
  [[nodiscard]] virtual Progress Next(BenchAnswer& answer) = 0;
  /// For a new connection.
  virtual void Reset() = 0;
};

/// `POST /v1/decide`
[[nodiscard]] std::unique_ptr<BenchWire> MakeHttpWire(const ServerAddress& address,
                                                      std::string_view rule,
                                                      std::string_view token);
/// `TG.DECIDE`
[[nodiscard]] std::unique_ptr<BenchWire> MakeRespWire(std::string_view rule,
                                                      std::string_view token);

}  // namespace tidegate::cli
