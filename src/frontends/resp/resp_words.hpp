// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tidegate {

/// The commands of the RESP frontend.
enum class RespWord : std::uint8_t {
  kThrottle,
  kDecide,
  kPeek,
  kDebit,
  kRefund,
  kReset,
  kAcquire,
  kRenew,
  kRelease,
  // Commands of the connection.
  kAuth,
  kClient,
  kCluster,
  kCommand,
  kConfig,
  kEcho,
  kHello,
  kInfo,
  kPing,
  kQuit,
  kResetConnection,
  kRole,
  kSelect,
  kTime,
};

struct RespWordInfo {
  std::string_view name;  ///< In lower case.
  RespWord word;
  int arity;  ///< As in COMMAND: counts the name; negative: the least number of arguments.
  enum class Kind : std::uint8_t {
    kAsks,        ///< Any number of these commands may be in progress at once.
    kChanges,     ///< Runs alone, so that later commands see its effect.
    kConnection,  ///< Concerns only the connection.
  } kind;
  int key;  ///< The position of the key among the arguments; 0: there is none.
  std::string_view arguments;
  std::string_view summary;
};

[[nodiscard]] std::span<const RespWordInfo> RespWords() noexcept;
/// Returns the command with this name, ignoring case, or nullptr if there is none.
[[nodiscard]] const RespWordInfo* FindRespWord(std::string_view name) noexcept;

}  // namespace tidegate
