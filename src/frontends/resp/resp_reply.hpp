// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "decision/decision_call.hpp"
#include "frontends/resp/resp_writer.hpp"

namespace tidegate {

class RespConnection;

/// A command whose reply is pending: an element of the list of its connection's commands, in their
/// order. Attached to its call.
struct RespPending {
  enum class Form : std::uint8_t {
    kThrottle,  ///< The five integers of redis-cell.
    kDecision,  ///< Numbers, with times in milliseconds, who decided and why.
    kMap,       ///< The same with names, as in the JSON answer.
    kDone,      ///< 1 if the operation changed something, otherwise 0.
    kError,     ///< The text of `error`; the command was not executed.
  };

  RespConnection* connection = nullptr;
  DecisionCall* next = nullptr;  ///< The call of the next command.
  Form form = Form::kDecision;
  bool ready = false;         ///< The reply can be written.
  std::int64_t quantity = 1;  ///< The quantity of CL.THROTTLE.
  std::string_view error;     ///< Lives in the call's memory.
};

/// Writes the reply to the command of `call`. REQUIRES: the reply is ready.
void WriteReply(RespWriter& writer, DecisionCall& call);

}  // namespace tidegate
