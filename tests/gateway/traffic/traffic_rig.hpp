// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "gateway/proxy_process.hpp"

namespace tidegate::gateway_test {

/// What a Tidegate has beyond one upstream, a `deny` and rules as people have them.
struct TidegateOptions {
  std::string sections = {};  ///< Further lines of the configuration.
  std::string route = {};     ///< Further keys of the route, as `, encoded_slashes: match`.
  std::string upstream = {};  ///< Further keys of the upstream, as `, accept_bare_lf: true`.
};
[[nodiscard]] std::unique_ptr<ProxyProcess> TidegateWithRules(int upstream_port,
                                                              const TidegateOptions& options);

/// nginx before one upstream; throws where it is not installed.
[[nodiscard]] std::unique_ptr<ProxyProcess> RequiredNginx(int upstream_port);

}  // namespace tidegate::gateway_test
