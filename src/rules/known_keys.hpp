// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace tidegate {

/// The keys of one section of the configuration.
struct SectionKeys {
  std::string_view section;  ///< As docs/config.schema.json names it; `config` is the whole file.
  std::vector<std::string_view> keys;
};

/// Every key that the reader knows, from the tables that it reads by.
[[nodiscard]] std::vector<SectionKeys> KnownKeys();

}  // namespace tidegate
