// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "decision/decision_call.hpp"
#include "frontends/resp/resp_writer.hpp"

namespace tidegate {

class RespConnection;

/// A command whose reply is pending, in the order of a connection's commands. Attached to its call.
struct RespPending {
  enum class Form : std::uint8_t {
    kThrottle,  ///< The five integers of redis-cell.
    kDecision,  ///< Times in milliseconds, who decided and why; a map in version 3.
    kDone,      ///< 1 or 0: whether there was something to do.
    kError,     ///< `error`: the command was not carried out.
  };

  RespConnection* connection = nullptr;
  DecisionCall* next = nullptr;  ///< The command behind it.
  Form form = Form::kDecision;
  bool ready = false;         ///< The reply can be written.
  std::int64_t quantity = 1;  ///< Of CL.THROTTLE.
  std::string_view error;     ///< In the call's memory.
};

/// Writes the reply to the command that `call` decides. REQUIRES: it is ready.
void WriteReply(RespWriter& writer, DecisionCall& call);

}  // namespace tidegate
