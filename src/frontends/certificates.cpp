// SPDX-License-Identifier: Apache-2.0
#include "frontends/certificates.hpp"

#include <algorithm>

namespace tidegate {
namespace {

bool Names(const CertificateSpec& spec, const net::PeerCertificate& certificate) noexcept {
  switch (spec.field) {
    case CertificateSpec::Field::kSubject:
      return certificate.subject == spec.value;
    case CertificateSpec::Field::kUri:
      return std::ranges::find(certificate.uris, spec.value) != certificate.uris.end();
    case CertificateSpec::Field::kDns:
      break;
  }
  return std::ranges::find(certificate.dns_names, spec.value) != certificate.dns_names.end();
}

}  // namespace

const CertificateSpec* Certificates::Find(const net::Peer& peer) const noexcept {
  if (peer.certificate == nullptr) return nullptr;
  const auto found = std::ranges::find_if(
      specs_, [&](const CertificateSpec& spec) { return Names(spec, *peer.certificate); });
  return found == specs_.end() ? nullptr : &*found;
}

std::string Certificates::NameOf(const net::Peer& peer) const {
  if (const CertificateSpec* const spec = Find(peer)) return spec->name;
  return peer.certificate == nullptr ? "(certificate)" : std::string(peer.certificate->Name());
}

}  // namespace tidegate
