// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "rules/config_sections.hpp"

namespace tidegate {

/// Reads `access.certificates`. Reports every problem; entries with problems are left out.
[[nodiscard]] std::vector<CertificateSpec> ReadAccessCertificates(const ConfigValue& value);
void AppendAccessCertificateKeys(std::vector<SectionKeys>& sections);

}  // namespace tidegate
