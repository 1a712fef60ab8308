// SPDX-License-Identifier: Apache-2.0
#include "net/tls_server.hpp"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "net/tls_session_impl.hpp"

namespace tidegate::net {
namespace {

using openssl::Bad;

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

/// Whom a certificate is for: its DNS names; its common name where it has no names at all.
std::vector<std::string> NamesOf(X509* certificate) {
  std::vector<std::string> names;
  auto* const all = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all, i);
    if (name->type != GEN_DNS) continue;
    const ASN1_STRING* const text = name->d.dNSName;
    names.push_back(Lower({reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                           static_cast<std::size_t>(ASN1_STRING_length(text))}));
  }
  if (all == nullptr) {
    char common[256];
    const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                               common, sizeof common);
    if (size > 0) names.push_back(Lower({common, static_cast<std::size_t>(size)}));
  }
  GENERAL_NAMES_free(all);
  std::ranges::sort(names);
  return names;
}

int KeyKind(X509* certificate) { return EVP_PKEY_get_base_id(X509_get0_pubkey(certificate)); }

/// Only what this server speaks: a client that offers none of it is told so.
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

Result<void> AskForCertificates(SSL_CTX* context, const TlsServer::Options& options) {
  using Clients = TlsServer::Clients;
  if (options.clients == Clients::kUnknown) return {};
  if (auto trusted = openssl::Trust(context, options.client_ca_pem); !trusted) return trusted;
  SSL_CTX_set_verify(context,
                     options.clients == Clients::kMustBeKnown
                         ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
                         : SSL_VERIFY_PEER,
                     nullptr);
  const openssl::Bio bio = openssl::Memory(options.client_ca_pem);
  while (const openssl::Certificate one{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
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
    std::vector<int> kinds;  ///< Of keys.
  };
  std::vector<Choice> choices;  ///< The first is for those who ask for nobody, or a stranger.
  std::unordered_map<std::string, SSL_CTX*> by_name;
  bool must_be_known = false;

  /// Where a certificate belongs; nullptr: OpenSSL gives no context.
  Choice* Place(X509* certificate, const Options& options, Result<void>& result);
  [[nodiscard]] SSL_CTX* Find(const std::string& name) const;
  static int OnName(SSL* ssl, int*, void* self);
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
  SSL_CTX* const context = static_cast<const Impl*>(self)->Find(Lower(name));
  if (context == nullptr) return SSL_TLSEXT_ERR_NOACK;
  return SSL_set_SSL_CTX(ssl, context) == nullptr ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_OK;
}

TlsServer::Impl::Choice* TlsServer::Impl::Place(X509* certificate, const Options& options,
                                                Result<void>& result) {
  std::vector<std::string> names = NamesOf(certificate);
  const int kind = KeyKind(certificate);
  for (Choice& choice : choices) {
    if (choice.names != names || std::ranges::count(choice.kinds, kind) > 0) continue;
    choice.kinds.push_back(kind);
    return &choice;
  }
  Choice& choice = choices.emplace_back();
  choice.names = std::move(names);
  choice.kinds.push_back(kind);
  choice.context = openssl::NewContext(TLS_server_method());
  SSL_CTX* const context = choice.context.get();
  if (context == nullptr) {
    result = Bad("OpenSSL gives no context");
    return nullptr;
  }
  if (options.only_13) (void)SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_PRIORITIZE_CHACHA);
  // Clients come back with a ticket; a table of sessions would be shared by all reactors.
  (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  static constexpr unsigned char kSessions[] = "tidegate";
  (void)SSL_CTX_set_session_id_context(context, kSessions, sizeof kSessions - 1);
  if (options.http) SSL_CTX_set_alpn_select_cb(context, ChooseProtocol, nullptr);
  (void)SSL_CTX_set_tlsext_servername_callback(context, OnName);
  (void)SSL_CTX_set_tlsext_servername_arg(context, this);
  result = AskForCertificates(context, options);
  return result ? &choice : nullptr;
}

TlsServer::TlsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsServer::~TlsServer() = default;

Result<std::shared_ptr<const TlsServer>> TlsServer::Make(const Options& options) {
  auto impl = std::make_unique<Impl>();
  for (const Pair& pair : options.certificates) {
    const openssl::Bio bio = openssl::Memory(pair.certificate_pem);
    const openssl::Certificate own{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)};
    if (own == nullptr) return Bad("`certificate` cannot be used");
    Result<void> result;
    Impl::Choice* const choice = impl->Place(own.get(), options, result);
    if (choice == nullptr) return std::unexpected(std::move(result.error()));
    SSL_CTX* const context = choice->context.get();
    if (auto shown = openssl::Present(context, pair.certificate_pem, pair.key_pem); !shown) {
      return std::unexpected(std::move(shown.error()));
    }
    for (const std::string& name : choice->names) impl->by_name.try_emplace(name, context);
  }
  impl->must_be_known = options.clients == Clients::kMustBeKnown;
  if (impl->choices.empty()) {
    return std::unexpected(Error{ErrorCode::kBadConfig, "there is no certificate"});
  }
  return std::shared_ptr<const TlsServer>(new TlsServer(std::move(impl)));
}

bool TlsServer::Accepts(const TlsSession& session) const noexcept {
  return !impl_->must_be_known || session.verified();
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
