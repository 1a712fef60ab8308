// SPDX-License-Identifier: Apache-2.0
#include "net/tls_server.hpp"

#include <algorithm>
#include <ctime>
#include <expected>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/ascii.hpp"
#include "net/openssl.hpp"

namespace tidegate::net {
namespace {

using openssl::Bad;

/// Returns the DNS names of a certificate; its common name if it has no alternative names at all.
std::vector<std::string> NamesOf(const X509* certificate) {
  std::vector<std::string> names;
  const bool listed = openssl::EachAlternativeName(certificate, [&](const GENERAL_NAME& name) {
    if (name.type == GEN_DNS) names.push_back(Lowered(openssl::TextOf(name.d.dNSName)));
  });
  if (const std::string common = openssl::CommonName(certificate); !listed && !common.empty()) {
    names.push_back(Lowered(common));
  }
  std::ranges::sort(names);
  return names;
}

int KeyKind(X509* certificate) { return EVP_PKEY_get_base_id(X509_get0_pubkey(certificate)); }

/// Selects HTTP/1.1. A client that offers only other protocols gets an alert.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned offered_size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(&selected, size, kHttp11, sizeof kHttp11 - 1, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = selected;
  return SSL_TLSEXT_ERR_OK;
}

/// Suites with ephemeral keys, so that a stolen key cannot decrypt recorded connections, and
/// without CBC, as in TLS 1.3.
constexpr const char* kTls12Suites = "ECDHE+AESGCM:ECDHE+CHACHA20";

std::time_t SecondsOf(const ASN1_TIME* time) {
  std::tm parts{};
  return time != nullptr && ASN1_TIME_to_tm(time, &parts) == 1
             ? timegm(&parts)
             : std::numeric_limits<std::time_t>::max();
}

/// Makes the context check clients' certificates against the CRLs in `pem`. Only the certificate of
/// the client itself is checked, not those of intermediate authorities. Returns the time at which
/// the first of the CRLs expires.
Result<std::time_t> CheckRevocation(SSL_CTX* context, const std::string& pem) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  const auto crls = openssl::ReadAll<openssl::Crl, openssl::NextCrl>(pem);
  if (crls.empty()) return Bad("there is no CRL in PEM form");
  std::time_t until = std::numeric_limits<std::time_t>::max();
  for (const openssl::Crl& one : crls) {
    if (X509_STORE_add_crl(store, one.get()) != 1) return Bad("a CRL cannot be used");
    until = std::min(until, SecondsOf(X509_CRL_get0_nextUpdate(one.get())));
  }
  if (X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK) != 1) return Bad("CRLs cannot be used");
  ERR_clear_error();
  return until;
}

Result<void> RequestCertificates(SSL_CTX* context, const ListenTls& spec) {
  if (spec.clients == ListenTls::Clients::kNone) return {};
  if (auto trusted = openssl::Trust(context, spec.client_ca_pem); !trusted) return trusted;
  SSL_CTX_set_verify(context,
                     spec.clients == ListenTls::Clients::kRequired
                         ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
                         : SSL_VERIFY_PEER,
                     nullptr);
  for (const openssl::Certificate& one : openssl::ReadCertificates(spec.client_ca_pem)) {
    (void)SSL_CTX_add_client_CA(context, one.get());
  }
  ERR_clear_error();
  return {};
}

}  // namespace

struct TlsServer::Impl {
  struct Choice {
    openssl::Context context;
    std::vector<std::string> names;
    std::vector<int> key_kinds;
  };
  std::vector<Choice> choices;  ///< The first is for clients that send no name, or an unknown one.
  std::unordered_map<std::string, SSL_CTX*> by_name;
  bool requires_certificate = false;
  /// The time at which the first CRL expires. From then on sessions are not resumed, because a
  /// resumption checks no certificate.
  std::time_t crls_until = std::numeric_limits<std::time_t>::max();

  /// Returns the choice to which a certificate belongs; makes a new one if needed.
  [[nodiscard]] Result<Choice*> Place(X509* certificate, const ListenTls& spec,
                                      TlsClient::Protocol protocol);
  [[nodiscard]] SSL_CTX* Find(const std::string& name) const;
  static int OnName(SSL* ssl, int*, void* self);
  static SSL_TICKET_RETURN OnTicket(SSL*, SSL_SESSION*, const unsigned char*, std::size_t,
                                    SSL_TICKET_STATUS status, void* self);
};

SSL_CTX* TlsServer::Impl::Find(const std::string& name) const {
  if (const auto found = by_name.find(name); found != by_name.end()) return found->second;
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return nullptr;
  const auto found = by_name.find("*" + name.substr(dot));
  return found == by_name.end() ? nullptr : found->second;
}

int TlsServer::Impl::OnName(SSL* ssl, int*, void* self) {
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return SSL_TLSEXT_ERR_NOACK;
  SSL_CTX* const context = static_cast<const Impl*>(self)->Find(Lowered(name));
  if (context == nullptr) return SSL_TLSEXT_ERR_NOACK;
  return SSL_set_SSL_CTX(ssl, context) == nullptr ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_OK;
}

/// Ignores tickets once a CRL has expired: the full handshake checks the certificate.
SSL_TICKET_RETURN TlsServer::Impl::OnTicket(SSL*, SSL_SESSION*, const unsigned char*, std::size_t,
                                            SSL_TICKET_STATUS status, void* self) {
  const bool expired = std::time(nullptr) >= static_cast<const Impl*>(self)->crls_until;
  switch (status) {
    case SSL_TICKET_SUCCESS:
      return expired ? SSL_TICKET_RETURN_IGNORE_RENEW : SSL_TICKET_RETURN_USE;
    case SSL_TICKET_SUCCESS_RENEW:
      return expired ? SSL_TICKET_RETURN_IGNORE_RENEW : SSL_TICKET_RETURN_USE_RENEW;
    case SSL_TICKET_EMPTY:
    case SSL_TICKET_NO_DECRYPT: return SSL_TICKET_RETURN_IGNORE_RENEW;
    default: return SSL_TICKET_RETURN_ABORT;
  }
}

Result<TlsServer::Impl::Choice*> TlsServer::Impl::Place(X509* certificate, const ListenTls& spec,
                                                        TlsClient::Protocol protocol) {
  std::vector<std::string> names = NamesOf(certificate);
  const int kind = KeyKind(certificate);
  for (Choice& choice : choices) {
    if (choice.names != names || std::ranges::count(choice.key_kinds, kind) > 0) continue;
    choice.key_kinds.push_back(kind);
    return &choice;
  }
  Choice& choice = choices.emplace_back();
  choice.names = std::move(names);
  choice.key_kinds.push_back(kind);
  choice.context = openssl::NewContext(TLS_server_method());
  SSL_CTX* const context = choice.context.get();
  if (context == nullptr) return Bad("OpenSSL cannot create a TLS context");
  if (SSL_CTX_set_cipher_list(context, kTls12Suites) != 1) {
    return Bad("OpenSSL has none of the cipher suites " + std::string(kTls12Suites));
  }
  if (spec.min_version == ListenTls::Version::kTls13)
    (void)SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_PRIORITIZE_CHACHA);
  // Clients resume sessions by tickets; a table of sessions would be shared by all reactors.
  (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  static constexpr unsigned char kSessions[] = "tidegate";
  (void)SSL_CTX_set_session_id_context(context, kSessions, sizeof kSessions - 1);
  if (protocol == TlsClient::Protocol::kHttp1)
    SSL_CTX_set_alpn_select_cb(context, ChooseProtocol, nullptr);
  (void)SSL_CTX_set_tlsext_servername_callback(context, OnName);
  (void)SSL_CTX_set_tlsext_servername_arg(context, this);
  if (auto set = RequestCertificates(context, spec); !set) {
    return std::unexpected(std::move(set.error()));
  }
  if (spec.clients != ListenTls::Clients::kNone && !spec.client_crl_pem.empty()) {
    auto until = CheckRevocation(context, spec.client_crl_pem);
    if (!until) return std::unexpected(std::move(until.error()));
    crls_until = *until;
    (void)SSL_CTX_set_session_ticket_cb(context, nullptr, OnTicket, this);
  }
  return &choice;
}

TlsServer::TlsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsServer::~TlsServer() = default;

Result<std::shared_ptr<const TlsServer>> TlsServer::Make(const ListenTls& spec,
                                                         TlsClient::Protocol protocol) {
  auto impl = std::make_unique<Impl>();
  for (const ListenTls::Certificate& pair : spec.certificates) {
    const auto chain = openssl::ReadCertificates(pair.certificate_pem);
    if (chain.empty()) return Bad("`certificate` cannot be used");
    auto placed = impl->Place(chain[0].get(), spec, protocol);
    if (!placed) return std::unexpected(std::move(placed.error()));
    const Impl::Choice& choice = **placed;
    SSL_CTX* const context = choice.context.get();
    if (auto shown = openssl::Present(context, pair.certificate_pem, pair.key_pem); !shown) {
      return std::unexpected(std::move(shown.error()));
    }
    for (const std::string& name : choice.names) impl->by_name.try_emplace(name, context);
  }
  impl->requires_certificate = spec.clients == ListenTls::Clients::kRequired;
  if (impl->choices.empty()) {
    return std::unexpected(Error{ErrorCode::kBadConfig, "there is no certificate"});
  }
  return std::shared_ptr<const TlsServer>(new TlsServer(std::move(impl)));
}

bool TlsServer::Accepts(const TlsSession& session) const noexcept {
  return !impl_->requires_certificate || session.verified();
}

std::unique_ptr<TlsSession> TlsServer::NewSession(const std::shared_ptr<const TlsServer>& server,
                                                  int socket) {
  auto impl = TlsSession::Impl::Make(server->impl_->choices.front().context.get(), socket);
  if (impl == nullptr) return nullptr;
  impl->owner = server;
  SSL_set_accept_state(impl->ssl.get());
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(impl)));
}

}  // namespace tidegate::net
