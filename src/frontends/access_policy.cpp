// SPDX-License-Identifier: Apache-2.0
#include "frontends/access_policy.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

#include "net/endpoint.hpp"

namespace tidegate {

Tokens::Tokens(std::span<const TokenSpec> specs) {
  tokens_.reserve(specs.size());
  for (const TokenSpec& spec : specs) {
    Token& token = tokens_.emplace_back();
    token.name = spec.name;
    token.may = spec.may;
    std::memcpy(token.secret.data(), spec.secret.data(), std::min(spec.secret.size(), kLongest));
  }
}

const Tokens::Token* Tokens::Find(std::string_view secret) const noexcept {
  // Tokens are stored padded with zero bytes, so a secret with a trailing zero byte would match
  // too.
  if (secret.empty() || secret.size() > kLongest || secret.find('\0') != std::string_view::npos)
    return nullptr;
  std::array<char, kLongest> padded{};
  std::memcpy(padded.data(), secret.data(), secret.size());
  const Token* found = nullptr;
  // No early exit: the time must not reveal which token matches.
  for (const Token& token : tokens_) {
    if (CRYPTO_memcmp(token.secret.data(), padded.data(), kLongest) == 0) found = &token;
  }
  OPENSSL_cleanse(padded.data(), padded.size());
  return found;
}

AccessPolicy::AccessPolicy(const ListenSpec& spec)
    : relays_(spec.proxy_protocol),
      certificates_(spec.tls && spec.tls->clients != ListenTls::Clients::kNone),
      auth_(spec.auth) {
  const auto endpoint = net::Endpoint::Parse(spec.address);
  loopback_ = endpoint && endpoint->IsLoopback();
}

bool AccessPolicy::Required(const Tokens& tokens) const noexcept {
  switch (auth_) {
    case ListenSpec::Auth::kRequired: return true;
    case ListenSpec::Auth::kOpen: return false;
    case ListenSpec::Auth::kByAddress: break;
  }
  return (!loopback_ || relays_) && (certificates_ || !tokens.empty());
}

bool AccessPolicy::IsLocal(const net::Peer& peer) const noexcept {
  return loopback_ && Address(peer.bytes).IsLoopback() && !peer.relayed;
}

Rights AccessPolicy::ForCertificate(const net::Peer& peer,
                                    const Certificates& certificates) noexcept {
  if (certificates.empty()) return Rights::kAll;
  const CertificateSpec* const spec = certificates.Find(peer);
  if (spec == nullptr) return Rights::kNone;
  return ForMay(spec->may);
}

Rights AccessPolicy::ForPeer(const net::Peer& peer, const Tokens& tokens,
                             const Certificates& certificates) const noexcept {
  if (peer.verified) return ForCertificate(peer, certificates);
  if (Required(peer, tokens)) return Rights::kNone;
  return IsLocal(peer) ? Rights::kAll : Rights::kDecide;
}

namespace {

bool Names(const CertificateSpec& spec, const net::PeerCertificate& certificate) noexcept {
  switch (spec.field) {
    case CertificateSpec::Field::kSubject: return certificate.subject == spec.value;
    case CertificateSpec::Field::kUri:
      return std::ranges::find(certificate.uris, spec.value) != certificate.uris.end();
    case CertificateSpec::Field::kDns: break;
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

}  // namespace tidegate
