// SPDX-License-Identifier: Apache-2.0
// tls of the store: whom Redis and its sentinels are believed to be, and who this node is to them.
#include "rules/config_client_tls.hpp"
#include "rules/config_store.hpp"

namespace tidegate {

void ReadStoreTls(const ConfigValue& value, StoreDraft& draft) {
  ClientTls tls = ReadClientTls(
      value,
      {.name_example = "redis.internal", .whose = "Redis's", .between = "this node and Redis"});
  draft.store.tls = {.ca_pem = std::move(tls.ca_pem),
                     .certificate_pem = std::move(tls.certificate_pem),
                     .key_pem = std::move(tls.key_pem),
                     .server_name = std::move(tls.server_name),
                     .verify = tls.verify};
}

void AppendStoreTlsKeys(std::vector<SectionKeys>& sections) {
  AppendClientTlsKeys("store_tls", sections);
}

}  // namespace tidegate
