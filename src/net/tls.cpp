// SPDX-License-Identifier: Apache-2.0
#include "net/tls.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/sslerr.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <expected>
#include <utility>

#include "base/ascii.hpp"
#include "net/openssl.hpp"

namespace tidegate::net {

namespace {

std::string SubjectOf(const X509* certificate) {
  std::string text = openssl::NameText(X509_get_subject_name(certificate));
  if (text.size() > PeerCertificate::kMaxSubject) {
    text.resize(PeerCertificate::kMaxSubject - 3);
    text += "...";
  }
  return text;
}

void KeepName(std::vector<std::string>& names, const ASN1_STRING* name, std::size_t longest) {
  const std::string_view text = openssl::TextOf(name);
  const bool printable = std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
  if (text.empty() || text.size() > longest || !printable) return;
  if (names.size() < PeerCertificate::kMaxNames) names.emplace_back(text);
}

/// The most records that one call of OpenSSL may read. OpenSSL keeps reading while records contain
/// no data (key updates, refused renegotiations, a handshake in fragments of a byte), and meanwhile
/// no other connection gets its turn. A handshake has a dozen records.
constexpr int kMostRecords = 64;

using Cause = TlsSession::Cause;

Cause CauseOf(long verified) noexcept {
  switch (verified) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_UNTRUSTED: return Cause::kUnknownIssuer;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return Cause::kOtherName;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID: return Cause::kOutOfDate;
    default: return Cause::kOther;
  }
}

/// Returns the cause of the peer's alert, which is OpenSSL's last error.
Cause CauseOfAlert(const SSL* ssl) {
  // A certificate request contains a list of authorities, which may be empty.
  const bool requested = SSL_get0_peer_CA_list(ssl) != nullptr;
  const bool presented = SSL_get_certificate(ssl) != nullptr;
  switch (ERR_GET_REASON(ERR_peek_last_error())) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: return Cause::kWantsCertificate;
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      // TLS 1.2 has no more specific alert.
      return requested && !presented ? Cause::kWantsCertificate : Cause::kOther;
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      return presented ? Cause::kRefusesCertificate : Cause::kOther;
    default: return Cause::kOther;
  }
}

/// Returns the text of an IP address; empty if `bytes` is not an address.
std::string AddressText(const ASN1_STRING* bytes) {
  const int size = ASN1_STRING_length(bytes);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (size != 4 && size != 16) return {};
  (void)inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text.data(),
                  text.size());
  return text.data();
}

}  // namespace

std::shared_ptr<const PeerCertificate> PeerCertificate::Read(const x509_st* certificate) {
  auto read = std::make_shared<PeerCertificate>();
  read->subject = SubjectOf(certificate);
  (void)openssl::EachAlternativeName(certificate, [&](const GENERAL_NAME& name) {
    if (name.type == GEN_URI) KeepName(read->uris, name.d.uniformResourceIdentifier, kMaxUri);
    if (name.type == GEN_DNS) KeepName(read->dns_names, name.d.dNSName, kMaxDnsName);
  });
  for (std::string& name : read->dns_names) name = Lowered(name);
  return read;
}

std::unique_ptr<TlsSession::Impl> TlsSession::Impl::Make(SSL_CTX* context, int socket) {
  auto impl = std::make_unique<Impl>();
  impl->ssl.reset(SSL_new(context));
  SSL* const ssl = impl->ssl.get();
  if (ssl == nullptr || SSL_set_fd(ssl, socket) != 1) return nullptr;
  SSL_set_msg_callback(
      ssl, [](int sent, int, int content, const void*, std::size_t, SSL* of, void* argument) {
        Impl& mine = *static_cast<Impl*>(argument);
        if (sent != 0 || content != SSL3_RT_HEADER || ++mine.records <= kMostRecords) return;
        if (std::exchange(mine.flooded, true)) return;
        // Replacing the input by one without data ends the call.
        BIO* const nothing = BIO_new(BIO_s_mem());
        (void)BIO_set_mem_eof_return(nothing, 0);
        SSL_set0_rbio(of, nothing);
      });
  SSL_set_msg_callback_arg(ssl, impl.get());
  return impl;
}

TlsSession::TlsSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsSession::~TlsSession() = default;

TlsSession::Shake TlsSession::Handshake() {
  ERR_clear_error();
  impl_->records = 0;
  const int done = SSL_do_handshake(impl_->ssl.get());
  if (done == 1) return Shake::kDone;
  const int why = SSL_get_error(impl_->ssl.get(), done);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return Shake::kMore;
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  plain_ = reason == SSL_R_HTTP_REQUEST || reason == SSL_R_WRONG_VERSION_NUMBER ||
           reason == SSL_R_HTTPS_PROXY_REQUEST;
  const long verified = SSL_get_verify_result(impl_->ssl.get());
  const bool verifies = SSL_get_verify_mode(impl_->ssl.get()) != SSL_VERIFY_NONE;
  if (verifies && reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    certificate_fault_ = CertificateFault::kMissing;
  } else if (verifies && reason == SSL_R_BAD_SIGNATURE) {
    certificate_fault_ = CertificateFault::kRefused;
  }
  if (verified != X509_V_OK && verifies) {
    certificate_fault_ = CertificateFault::kRefused;
    cause_ = CauseOf(verified);
    problem_ = std::string("the peer's certificate is not accepted: ") +
               X509_verify_cert_error_string(verified);
  } else {
    cause_ = CauseOfAlert(impl_->ssl.get());
    problem_ = "the TLS handshake failed: " + openssl::LastError();
  }
  ERR_clear_error();
  return Shake::kFailed;
}

ssize_t TlsSession::Read(char* data, std::size_t size) {
  ERR_clear_error();
  impl_->records = 0;
  std::size_t got = 0;
  if (SSL_read_ex(impl_->ssl.get(), data, size, &got) == 1) return static_cast<ssize_t>(got);
  if (impl_->flooded) return kIoBroken;
  switch (SSL_get_error(impl_->ssl.get(), 0)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return kIoWait;
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_SSL:
      if (ERR_GET_REASON(ERR_peek_last_error()) != SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        cause_ = CauseOfAlert(impl_->ssl.get());
        problem_ = "TLS failed: " + openssl::LastError();
      }
      return kIoBroken;
    default:
      // Without close_notify an attacker may have cut the connection.
      return kIoBroken;
  }
}

ssize_t TlsSession::Write(const char* data, std::size_t size) {
  ERR_clear_error();
  std::size_t sent = 0;
  if (SSL_write_ex(impl_->ssl.get(), data, size, &sent) == 1) return static_cast<ssize_t>(sent);
  const int error = SSL_get_error(impl_->ssl.get(), 0);
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? kIoWait : kIoBroken;
}

bool TlsSession::HasPending() const noexcept { return SSL_has_pending(impl_->ssl.get()) == 1; }

bool TlsSession::wants_to_write() const noexcept { return SSL_want_write(impl_->ssl.get()); }

void TlsSession::Close() noexcept {
  // A second call would read up to the peer's close_notify, and drop the data before it.
  if ((SSL_get_shutdown(impl_->ssl.get()) & SSL_SENT_SHUTDOWN) != 0) return;
  ERR_clear_error();
  (void)SSL_shutdown(impl_->ssl.get());
  ERR_clear_error();
}

std::vector<std::string> TlsSession::PeerNames() const {
  std::vector<std::string> names;
  // Only a client session has the peer's chain, even before the chain is verified. The peer's own
  // certificate is the first in it.
  const STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(impl_->ssl.get());
  if (sk_X509_num(chain) <= 0) return names;
  X509* const own = sk_X509_value(chain, 0);
  const bool listed = openssl::EachAlternativeName(own, [&](const GENERAL_NAME& name) {
    if (name.type == GEN_DNS) names.emplace_back(openssl::TextOf(name.d.dNSName));
    if (name.type == GEN_IPADD) names.push_back(AddressText(name.d.iPAddress));
  });
  if (const std::string common = openssl::CommonName(own); !listed && !common.empty()) {
    names.push_back(common);
  }
  return names;
}

bool TlsSession::verified() const noexcept {
  const SSL* const ssl = impl_->ssl.get();
  const X509* const certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return false;
  // A resumed session has the certificate of its first handshake, which may have expired.
  return X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0;
}

std::shared_ptr<const PeerCertificate> TlsSession::Certificate() const {
  return PeerCertificate::Read(SSL_get0_peer_certificate(impl_->ssl.get()));
}

Result<std::shared_ptr<const TlsClient>> TlsClient::Make(const TlsClientSpec& spec,
                                                         Protocol protocol) {
  openssl::Context owned = openssl::NewContext(TLS_client_method());
  SSL_CTX* const context = owned.get();
  if (context == nullptr) return openssl::Bad("OpenSSL cannot create a TLS context");
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  if (protocol == Protocol::kHttp1)
    (void)SSL_CTX_set_alpn_protos(context, kHttp11, sizeof kHttp11 - 1);
  SSL_CTX_set_verify(context, spec.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (spec.ca_pem.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) != 1) {
      return openssl::Bad("cannot load the system's CA certificates");
    }
  } else if (auto trusted = openssl::Trust(context, spec.ca_pem); !trusted) {
    return std::unexpected(std::move(trusted.error()));
  }
  if (!spec.certificate_pem.empty()) {
    auto presented = openssl::Present(context, spec.certificate_pem, spec.key_pem);
    if (!presented) return std::unexpected(std::move(presented.error()));
  }
  return std::shared_ptr<const TlsClient>(new TlsClient(std::move(owned)));
}

std::unique_ptr<TlsSession> TlsClient::NewSession(int socket, const std::string& name) const {
  auto impl = TlsSession::Impl::Make(context_.get(), socket);
  if (impl == nullptr) return nullptr;
  SSL* const ssl = impl->ssl.get();
  // This call fails if the name is not an address. An address must not be sent as a server name
  // (RFC 6066, 3).
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) != 1) {
    ERR_clear_error();
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (SSL_set_tlsext_host_name(ssl, name.c_str()) != 1) return nullptr;
    if (SSL_set1_host(ssl, name.c_str()) != 1) return nullptr;
  }
  SSL_set_connect_state(ssl);
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(impl)));
}

}  // namespace tidegate::net
