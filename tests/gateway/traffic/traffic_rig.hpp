// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "gateway/proxy_process.hpp"

namespace tidegate::gateway_test {

/// Additions to the basic configuration, which has one upstream, a `deny` section and typical
/// rules.
struct TidegateOptions {
  std::string sections = {};  ///< Additional lines of the configuration.
  std::string route = {};     ///< Additional keys of the route, such as `, encoded_slashes: match`.
  std::string upstream = {};  ///< Additional keys of the upstream, such as `, accept_bare_lf:
                              ///< true`.
};
[[nodiscard]] std::unique_ptr<ProxyProcess> TidegateWithRules(int upstream_port,
                                                              const TidegateOptions& options);

/// Starts nginx in front of one upstream. Throws if nginx is not installed.
[[nodiscard]] std::unique_ptr<ProxyProcess> RequiredNginx(int upstream_port);

}  // namespace tidegate::gateway_test
