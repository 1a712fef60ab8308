// SPDX-License-Identifier: Apache-2.0
// tls of a listener: its certificates, and those that its clients must present.
#include "rules/config_key_pair.hpp"
#include "rules/config_listen.hpp"
#include "rules/pem.hpp"

namespace tidegate {
namespace {

using Clients = ListenTls::Clients;
using Version = ListenTls::Version;

/// Each is read from files and checked, at every reload.
constexpr std::size_t kMaxCertificates = 1'000;

struct TlsDraft {
  ListenTls tls;
  bool has_certificates = false;
  bool has_client_ca = false;
  const YamlNode* client_crl = nullptr;
  std::optional<Clients> clients;
  const YamlNode* clients_at = nullptr;
};

constexpr std::array<Choice<Clients>, 3> kClientsWords = {
    {{"none", Clients::kNone}, {"optional", Clients::kOptional}, {"required", Clients::kRequired}}};
constexpr std::array<Choice<Version>, 2> kVersionWords = {
    {{"1.2", Version::kTls12}, {"1.3", Version::kTls13}}};

constexpr std::array<ConfigKey<KeyPairDraft>, 2> kPairKeys = {{
    {"certificate", ReadCertificate},
    {"key", ReadKey},
}};

void ReadPairs(const ConfigValue& value, TlsDraft& draft) {
  draft.has_certificates = true;
  if (value.is_list() && value.node().children.empty()) {
    return value.Error(
        "names no certificate, and without one no client is served; write at least one, as in `- { "
        "certificate: file:api.pem, key: file:api.key }`");
  }
  if (value.is_list() && value.node().children.size() > kMaxCertificates) {
    return value.Error("names more than 1,000 certificates");
  }
  value.EachItem([&](const ConfigValue& item) {
    KeyPairDraft pair;
    ReadSection(item, kPairKeys, pair);
    if (item.is_map()) JudgeKeyPair(item, pair, KeyPair::kRequired);
    draft.tls.certificates.push_back({std::move(pair.certificate_pem), std::move(pair.key_pem)});
  });
}

void ReadClientCrl(const ConfigValue& value, TlsDraft& draft) {
  draft.client_crl = &value.node();
  auto pem = value.Secret(0, kMaxBundleFile, Secrecy::kPublic);
  if (!pem) return;
  if (const auto valid = CheckCrls(*pem); !valid) return value.Error(valid.error().message);
  if (const auto dated = CrlOutOfDate(*pem)) value.Warning(*dated);
  draft.tls.client_crl_pem = *std::move(pem);
}

constexpr std::array<ConfigKey<TlsDraft>, 5> kTlsKeys = {{
    {"certificates", ReadPairs},
    {"client_ca",
     [](const ConfigValue& v, TlsDraft& d) {
       d.has_client_ca = true;
       d.tls.client_ca_pem = ReadCertificates(v);
     }},
    {"client_crl", ReadClientCrl},
    {"client_certificates",
     [](const ConfigValue& v, TlsDraft& d) {
       d.clients_at = &v.node();
       d.clients = v.OneOf(kClientsWords);
     }},
    {"min_version",
     [](const ConfigValue& v, TlsDraft& d) { Put(d.tls.min_version, v.OneOf(kVersionWords)); }},
}};

void JudgeClients(const ConfigValue& value, const TlsDraft& draft) {
  if (!draft.clients || draft.has_client_ca == (*draft.clients != Clients::kNone)) return;
  const Where where{.parent = &value.where(), .key = "client_certificates"};
  value.context().Error(
      draft.clients_at->at, where,
      draft.has_client_ca
          ? "no client is asked for a certificate, so that `client_ca` has no effect; write "
            "`optional` or `required`, or remove `client_ca`"
          : "needs `client_ca`, the authorities by which clients' certificates are believed");
}

}  // namespace

void ReadListenTls(const ConfigValue& value, ListenSpec& door, ConfigPlaces::Door& place) {
  TlsDraft draft;
  ReadSection(value, kTlsKeys, draft);
  if (value.is_map() && !draft.has_certificates) {
    value.Error(
        "needs `certificates`: a list, as in `- { certificate: file:api.pem, key: file:api.key }`");
  }
  JudgeClients(value, draft);
  if (draft.client_crl != nullptr && !draft.has_client_ca) {
    const Where where{.parent = &value.where(), .key = "client_crl"};
    value.context().Error(draft.client_crl->at, where,
                          "needs `client_ca`: without it the listener requests no certificates");
  }
  draft.tls.clients =
      draft.clients.value_or(draft.has_client_ca ? Clients::kRequired : Clients::kNone);
  place.client_certificates = draft.has_client_ca || draft.clients_at != nullptr;
  door.tls = std::move(draft.tls);
}

void AppendListenTlsKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("listen_tls", kTlsKeys));
  sections.push_back(KeysOf("key_pair", kPairKeys));
}

}  // namespace tidegate
