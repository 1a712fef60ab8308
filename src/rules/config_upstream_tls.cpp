// SPDX-License-Identifier: Apache-2.0
// tls of an upstream: whom `https://` targets are believed to be, and who the gateway is to them.
#include "rules/config_client_tls.hpp"
#include "rules/config_gateway.hpp"

namespace tidegate {

void ReadUpstreamTls(const ConfigValue& value, UpstreamSpec& upstream) {
  ClientTls tls = ReadClientTls(value, {.name_example = "api.internal",
                                        .whose = "the target's",
                                        .between = "the gateway and its targets"});
  upstream.tls = {.ca_pem = std::move(tls.ca_pem),
                  .server_name = std::move(tls.server_name),
                  .certificate_pem = std::move(tls.certificate_pem),
                  .key_pem = std::move(tls.key_pem),
                  .verify = tls.verify};
}

void AppendUpstreamTlsKeys(std::vector<SectionKeys>& sections) {
  AppendClientTlsKeys("tls", sections);
}

}  // namespace tidegate
