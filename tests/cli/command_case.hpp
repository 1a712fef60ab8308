// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "cli/admin_client.hpp"
#include "cli/fake_admin.hpp"

namespace tidegate::cli_test {

/// Fixture that runs a command against a fake server and captures the output.
class CommandCase : public testing::Test {
 protected:
  CommandCase() {
    for (const char* name : {"TIDEGATE_TOKEN", "TIDEGATE_ADMIN", "TIDEGATE_SERVER"}) unsetenv(name);
  }

  static cli::ClientOptions To(const FakeAdmin& server, bool json = false) {
    return {.server = server.address(), .timeout = std::chrono::seconds{10}, .json = json};
  }
  std::string Out() const { return out_.str(); }
  std::string Err() const { return err_.str(); }
  /// Returns the output of `run` if the server responds to every request with this status and body.
  template <class Run>
  std::string Printed(const std::string& answer, Run run, int status = 200) {
    FakeAdmin server([&](const ReceivedRequest&) { return Reply{status, answer}; });
    out_.str("");
    err_.str("");
    exit_ = run(To(server));
    return Out();
  }

  FakeAdmin fake_;
  std::ostringstream out_;
  std::ostringstream err_;
  cli::Console console_{out_, err_};
  int exit_ = -1;  ///< Exit code of the last call of Printed().
};

}  // namespace tidegate::cli_test
