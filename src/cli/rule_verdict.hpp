// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/console.hpp"
#include "cli/members.hpp"

namespace tidegate::cli {

/// What one matched rule of an explanation says about the request, and how it looks.
struct RuleVerdict {
  std::string text;  ///< As the server's texts are: not yet fit for a terminal.
  Ink ink = Ink::kPlain;

  [[nodiscard]] static RuleVerdict Of(const Members& rule);
};

/// Whether a failure policy spoke for this rule, since the store did not.
[[nodiscard]] bool WithoutStore(const Members& rule);

}  // namespace tidegate::cli
