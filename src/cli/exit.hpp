// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidegate::cli {

/// The exit codes of every subcommand.
enum Exit : int {
  kOk = 0,       ///< Done; `decide`: allowed.
  kRuntime = 1,  ///< Something failed on the way; `decide`: denied.
  kUsage = 2,    ///< The command line, the question or the configuration is wrong.
  kNoAnswer = 3  ///< A server could not be asked, or could not answer.
};

}  // namespace tidegate::cli
