// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/config_value.hpp"

namespace tidegate {

/// `certificate` and `key` of a section, as far as they are read.
struct KeyPairDraft {
  std::string certificate_pem;  ///< Empty: not there, or told what is wrong.
  std::string key_pem;          ///< Likewise.
  const YamlNode* certificate = nullptr;
  const YamlNode* key = nullptr;
};

/// Certificates in PEM form; empty: told what is wrong.
[[nodiscard]] std::string ReadCertificates(const ConfigValue& value);
void ReadCertificate(const ConfigValue& value, KeyPairDraft& pair);
void ReadKey(const ConfigValue& value, KeyPairDraft& pair);

enum class KeyPair : bool { kOptional, kRequired };
/// Whether both are there, or neither if that may be, and belong together. `section`: whose keys
/// they are.
void JudgeKeyPair(const ConfigValue& section, const KeyPairDraft& pair, KeyPair needed);

}  // namespace tidegate
