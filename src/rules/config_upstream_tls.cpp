// SPDX-License-Identifier: Apache-2.0
// tls of an upstream: whom `https://` targets are believed to be, and who the gateway is to them.
#include <algorithm>
#include <memory_resource>

#include "rules/address.hpp"
#include "rules/ascii.hpp"
#include "rules/config_gateway.hpp"
#include "rules/config_key_pair.hpp"
#include "rules/path.hpp"

namespace tidegate {
namespace {

struct TlsDraft {
  UpstreamSpec::Tls tls;
  KeyPairDraft pair;
};

void ReadServerName(const ConfigValue& value, TlsDraft& draft) {
  const auto text = value.Text("a name, as in `api.internal`");
  if (!text) return;
  std::string name = *text;
  std::transform(name.begin(), name.end(), name.begin(), Lower);
  std::pmr::monotonic_buffer_resource memory;
  const auto normal = NormalizeHost(name, memory);
  if (!normal || *normal != name || Address::ParseWithPort(name)) {
    return value.Error(
        "should be the name in the target's certificate, as in `api.internal`: without a port, and "
        "no address");
  }
  draft.tls.server_name = std::move(name);
}

void ReadVerify(const ConfigValue& value, TlsDraft& draft) {
  const auto verify = value.Bool();
  if (!verify) return;
  draft.tls.verify = *verify;
  if (*verify) return;
  value.Warning(
      "anybody between the gateway and its targets may read and change what passes; to believe a "
      "certificate of your own give its authority as `ca`");
}

constexpr std::array<ConfigKey<TlsDraft>, 5> kTlsKeys = {{
    {"ca", [](const ConfigValue& v, TlsDraft& d) { d.tls.ca_pem = ReadCertificates(v); }},
    {"server_name", ReadServerName},
    {"certificate", [](const ConfigValue& v, TlsDraft& d) { ReadCertificate(v, d.pair); }},
    {"key", [](const ConfigValue& v, TlsDraft& d) { ReadKey(v, d.pair); }},
    {"verify", ReadVerify},
}};

}  // namespace

void ReadUpstreamTls(const ConfigValue& value, UpstreamSpec& upstream) {
  TlsDraft draft;
  ReadSection(value, kTlsKeys, draft);
  JudgeKeyPair(value, draft.pair, KeyPair::kOptional);
  draft.tls.certificate_pem = std::move(draft.pair.certificate_pem);
  draft.tls.key_pem = std::move(draft.pair.key_pem);
  upstream.tls = std::move(draft.tls);
}

void AppendUpstreamTlsKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("tls", kTlsKeys));
}

}  // namespace tidegate
