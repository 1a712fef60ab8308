// SPDX-License-Identifier: Apache-2.0
// tls of an upstream: whom `https://` targets are believed to be, and who the gateway is to them.
#include <algorithm>
#include <memory_resource>

#include "rules/address.hpp"
#include "rules/ascii.hpp"
#include "rules/config_gateway.hpp"
#include "rules/path.hpp"
#include "rules/pem.hpp"

namespace tidegate {
namespace {

struct TlsDraft {
  UpstreamSpec::Tls tls;
  const YamlNode* certificate = nullptr;
  const YamlNode* key = nullptr;
};

/// Certificates, checked; empty: told what is wrong.
std::string ReadCertificates(const ConfigValue& value) {
  auto pem = value.Secret(0, kMaxBundleFile);
  if (!pem) return {};
  if (const auto count = CountCertificates(*pem); !count) {
    value.Error(count.error().message);
    return {};
  }
  return *std::move(pem);
}

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
    {"certificate",
     [](const ConfigValue& v, TlsDraft& d) {
       d.certificate = &v.node();
       d.tls.certificate_pem = ReadCertificates(v);
     }},
    {"key",
     [](const ConfigValue& v, TlsDraft& d) {
       d.key = &v.node();
       Put(d.tls.key_pem, v.Secret(0));
     }},
    {"verify", ReadVerify},
}};

void JudgePair(const ConfigValue& value, const TlsDraft& draft) {
  const auto tell = [&](const YamlNode* node, std::string_view key, std::string_view message) {
    const Where where{.parent = &value.where(), .key = key};
    value.context().Error(node->at, where, message);
  };
  if (draft.certificate == nullptr && draft.key == nullptr) return;
  if (draft.key == nullptr) return tell(draft.certificate, "certificate", "needs its `key` too");
  if (draft.certificate == nullptr) return tell(draft.key, "key", "needs its `certificate` too");
  if (draft.tls.certificate_pem.empty() || draft.tls.key_pem.empty()) return;
  const auto fits = CheckKey(draft.tls.certificate_pem, draft.tls.key_pem);
  if (!fits) tell(draft.key, "key", fits.error().message);
}

}  // namespace

void ReadUpstreamTls(const ConfigValue& value, UpstreamSpec& upstream) {
  TlsDraft draft;
  ReadSection(value, kTlsKeys, draft);
  JudgePair(value, draft);
  upstream.tls = std::move(draft.tls);
}

void AppendUpstreamTlsKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("tls", kTlsKeys));
}

}  // namespace tidegate
