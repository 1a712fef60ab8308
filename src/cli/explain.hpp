// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/admin_client.hpp"
#include "cli/whom.hpp"

namespace tidegate::cli {

/// A request to be explained, or a rule and an identity.
struct ExplainOptions {
  AskOptions ask = {};
  Whom whom = {};  ///< Without a rule: the request.
  std::string method = {};
  std::string host = {};
  std::string path = {};                  ///< With a query, if there is one.
  std::vector<std::string> headers = {};  ///< `name: value`
  std::string client_ip = {};
  std::string peer = {};
  bool gateway = false;   ///< As it would come through the gateway.
  std::int64_t cost = 0;  ///< 0: the rules' own.
  std::string lease = {};
};

/// What is sent; the Error says what is missing.
[[nodiscard]] Result<AdminQuestion> QuestionOf(const ExplainOptions& options);

/// `tidegate explain`: what would be decided, and why. Charges nothing. Returns an exit code: kOk
/// whatever would be decided.
[[nodiscard]] int Explain(const ExplainOptions& options, const Console& console);

}  // namespace tidegate::cli
