// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tidegate {

/// The commands of the RESP door.
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
  // What clients send besides.
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
  int arity;  ///< As COMMAND tells it: with the name; negative: at least.
  enum class Kind : std::uint8_t {
    kAsks,        ///< Any number of them may be under way at once.
    kChanges,     ///< One after the other: what comes behind sees its effect.
    kConnection,  ///< Of the connection alone.
  } kind;
  int key;  ///< Where the key stands; 0: there is none.
  std::string_view arguments;
  std::string_view summary;
};

[[nodiscard]] std::span<const RespWordInfo> RespWords() noexcept;
/// In any case of letters; nullptr: there is none.
[[nodiscard]] const RespWordInfo* FindRespWord(std::string_view name) noexcept;

}  // namespace tidegate
