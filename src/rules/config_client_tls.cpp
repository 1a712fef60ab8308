// SPDX-License-Identifier: Apache-2.0
#include "rules/config_client_tls.hpp"

#include <algorithm>
#include <memory_resource>
#include <utility>

#include "rules/address.hpp"
#include "rules/ascii.hpp"
#include "rules/config_key_pair.hpp"
#include "rules/config_sections.hpp"
#include "rules/path.hpp"

namespace tidegate {
namespace {

struct ClientTlsDraft {
  const ClientTlsWords& words;
  ClientTls tls = {};
  KeyPairDraft pair = {};
};

void ReadServerName(const ConfigValue& value, ClientTlsDraft& draft) {
  const std::string example = Ticked(draft.words.name_example);
  const auto text = value.Text("a name, as in " + example);
  if (!text) return;
  std::string name = *text;
  std::transform(name.begin(), name.end(), name.begin(), Lower);
  std::pmr::monotonic_buffer_resource memory;
  const auto normal = NormalizeHost(name, memory);
  if (!normal || *normal != name || Address::ParseWithPort(name)) {
    return value.Error("should be the name in " + std::string{draft.words.whose} +
                       " certificate, as in " + example + ": without a port, and no address");
  }
  draft.tls.server_name = std::move(name);
}

void ReadVerify(const ConfigValue& value, ClientTlsDraft& draft) {
  const auto verify = value.Bool();
  if (!verify) return;
  draft.tls.verify = *verify;
  if (*verify) return;
  value.Warning("anybody between " + std::string{draft.words.between} +
                " may read and change what passes; to believe a certificate of your own give its "
                "authority as `ca`");
}

constexpr std::array<ConfigKey<ClientTlsDraft>, 5> kClientTlsKeys = {{
    {"ca", [](const ConfigValue& v, ClientTlsDraft& d) { d.tls.ca_pem = ReadCertificates(v); }},
    {"server_name", ReadServerName},
    {"certificate", [](const ConfigValue& v, ClientTlsDraft& d) { ReadCertificate(v, d.pair); }},
    {"key", [](const ConfigValue& v, ClientTlsDraft& d) { ReadKey(v, d.pair); }},
    {"verify", ReadVerify},
}};

}  // namespace

ClientTls ReadClientTls(const ConfigValue& section, const ClientTlsWords& words) {
  ClientTlsDraft draft{.words = words};
  ReadSection(section, kClientTlsKeys, draft);
  JudgeKeyPair(section, draft.pair, KeyPair::kOptional);
  draft.tls.certificate_pem = std::move(draft.pair.certificate_pem);
  draft.tls.key_pem = std::move(draft.pair.key_pem);
  return std::move(draft.tls);
}

void AppendClientTlsKeys(std::string_view section, std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf(section, kClientTlsKeys));
}

}  // namespace tidegate
