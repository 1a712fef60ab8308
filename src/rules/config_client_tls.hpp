// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rules/config_value.hpp"
#include "rules/known_keys.hpp"

namespace tidegate {

/// A section `tls` of what is connected to: whom it is believed to be, and who asks.
struct ClientTls {
  std::string ca_pem = {};
  std::string server_name = {};
  std::string certificate_pem = {};
  std::string key_pem = {};
  bool verify = true;
};

/// How its messages name who is at the other end.
struct ClientTlsWords {
  std::string_view name_example;  ///< "api.internal"
  std::string_view whose;         ///< "the target's"
  std::string_view between;       ///< "the gateway and its targets"
};

/// All that is wrong is told, with a warning where nothing is verified.
[[nodiscard]] ClientTls ReadClientTls(const ConfigValue& section, const ClientTlsWords& words);
/// `section`: as docs/config.schema.json names it.
void AppendClientTlsKeys(std::string_view section, std::vector<SectionKeys>& sections);

}  // namespace tidegate
