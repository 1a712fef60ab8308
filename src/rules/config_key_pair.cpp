// SPDX-License-Identifier: Apache-2.0
// A certificate and its key: what a listener shows its clients, and the gateway its upstreams.
#include "rules/config_key_pair.hpp"

#include "rules/pem.hpp"

namespace tidegate {

std::string ReadCertificates(const ConfigValue& value) {
  auto pem = value.Secret(0, kMaxBundleFile, Secrecy::kPublic);
  if (!pem) return {};
  if (const auto count = CountCertificates(*pem); !count) {
    value.Error(count.error().message);
    return {};
  }
  return *std::move(pem);
}

void ReadCertificate(const ConfigValue& value, KeyPairDraft& pair) {
  pair.certificate = &value.node();
  pair.certificate_pem = ReadCertificates(value);
  if (pair.certificate_pem.empty()) return;
  if (const auto dated = OutOfDate(pair.certificate_pem)) value.Warning(*dated);
}

void ReadKey(const ConfigValue& value, KeyPairDraft& pair) {
  pair.key = &value.node();
  auto pem = value.Secret(0);
  if (!pem) return;
  // As while it is being written anew.
  if (pem->empty()) return value.Error("is empty, and should be a private key in PEM form");
  pair.key_pem = *std::move(pem);
}

void JudgeKeyPair(const ConfigValue& section, const KeyPairDraft& pair, KeyPair needed) {
  const auto tell = [&](const YamlNode* node, std::string_view key, std::string_view message) {
    const Where where{.parent = &section.where(), .key = key};
    section.context().Error(node->at, where, message);
  };
  if (pair.certificate == nullptr && pair.key == nullptr) {
    if (needed == KeyPair::kRequired) section.Error("needs a `certificate` and its `key`");
    return;
  }
  if (pair.key == nullptr) return tell(pair.certificate, "certificate", "needs its `key` too");
  if (pair.certificate == nullptr) return tell(pair.key, "key", "needs its `certificate` too");
  if (pair.certificate_pem.empty() || pair.key_pem.empty()) return;
  const auto fits = CheckKey(pair.certificate_pem, pair.key_pem);
  if (!fits) tell(pair.key, "key", fits.error().message);
}

}  // namespace tidegate
