// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tidegate {

/// Returns the JSON Schema of the configuration.
[[nodiscard]] std::string ConfigSchema();

/// Returns `page`, in Markdown, with current tables between its markers:
///
///     <!-- generated: limits -->
///     | key | value | default | meaning |
///     <!-- end -->
///
/// A marker names a section. Sub-sections without a marker of their own are rows of the table
/// around them: `tls.ca`, `targets[].url`. Throws std::runtime_error if a marker names no section,
/// or if a section is in no table.
[[nodiscard]] std::string WithConfigTables(std::string_view page);

}  // namespace tidegate
