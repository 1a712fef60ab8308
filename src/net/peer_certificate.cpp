// SPDX-License-Identifier: Apache-2.0
#include "net/peer_certificate.hpp"

#include <openssl/x509v3.h>

#include <algorithm>
#include <cctype>

#include "net/openssl.hpp"

namespace tidegate::net {
namespace {

std::string SubjectOf(const X509* certificate) {
  const X509_NAME* const name = X509_get_subject_name(certificate);
  const openssl::Bio bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253) < 0) return {};
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  if (size <= 0) return {};
  std::string text(data, static_cast<std::size_t>(size));
  if (text.size() > PeerCertificate::kMaxSubject) {
    text.resize(PeerCertificate::kMaxSubject - 3);
    text += "...";
  }
  return text;
}

void KeepName(std::vector<std::string>& names, const ASN1_STRING* name, std::size_t longest) {
  const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name)),
                              static_cast<std::size_t>(ASN1_STRING_length(name)));
  const bool printable = std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
  if (text.empty() || text.size() > longest || !printable) return;
  if (names.size() < PeerCertificate::kMaxNames) names.emplace_back(text);
}

}  // namespace

std::string_view PeerCertificate::Name() const noexcept {
  if (!subject.empty()) return subject;
  if (!uris.empty()) return uris.front();
  if (!dns_names.empty()) return dns_names.front();
  return "(certificate)";
}

std::shared_ptr<const PeerCertificate> PeerCertificate::Read(const x509_st* certificate) {
  auto read = std::make_shared<PeerCertificate>();
  read->subject = SubjectOf(certificate);
  auto* const all = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all, i);
    if (name->type == GEN_URI) KeepName(read->uris, name->d.uniformResourceIdentifier, kMaxUri);
    if (name->type == GEN_DNS) KeepName(read->dns_names, name->d.dNSName, kMaxDnsName);
  }
  GENERAL_NAMES_free(all);
  for (std::string& name : read->dns_names) {
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  }
  ERR_clear_error();
  return read;
}

}  // namespace tidegate::net
