// SPDX-License-Identifier: Apache-2.0
#include "net/tls_session.hpp"

#include <arpa/inet.h>
#include <openssl/sslerr.h>
#include <openssl/x509v3.h>

#include <array>
#include <utility>

#include "net/tls_session_impl.hpp"

namespace tidegate::net {
namespace {

/// Of one call to OpenSSL, which goes on reading while what comes is no data: key updates, refused
/// renegotiations, a greeting in bits of a byte. Nobody else would have his turn meanwhile. A
/// handshake has a dozen, data one.
constexpr int kMostRecords = 64;

using Cause = TlsSession::Cause;

Cause CauseOf(long verified) noexcept {
  switch (verified) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_UNTRUSTED:
      return Cause::kUnknownIssuer;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return Cause::kOtherName;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Cause::kOutOfDate;
    default:
      return Cause::kOther;
  }
}

/// Of the other side's alert, which is OpenSSL's last error.
Cause CauseOfAlert(const SSL* ssl) {
  // The authorities that it would believe, none perhaps, come with the question for a certificate.
  const bool asked = SSL_get0_peer_CA_list(ssl) != nullptr;
  const bool shown = SSL_get_certificate(ssl) != nullptr;
  switch (ERR_GET_REASON(ERR_peek_last_error())) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return Cause::kWantsCertificate;
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      // What 1.2 has for that, and for much else.
      return asked && !shown ? Cause::kWantsCertificate : Cause::kOther;
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      return shown ? Cause::kRefusesCertificate : Cause::kOther;
    default:
      return Cause::kOther;
  }
}

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

/// Empty: it is no address.
std::string AddressText(const ASN1_STRING* bytes) {
  const int size = ASN1_STRING_length(bytes);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (size != 4 && size != 16) return {};
  (void)inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text.data(),
                  text.size());
  return text.data();
}

}  // namespace

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
        // Nothing more to read: that ends the call.
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
    problem_ =
        std::string("its certificate is not accepted: ") + X509_verify_cert_error_string(verified);
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
    case SSL_ERROR_WANT_WRITE:
      return kIoWait;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    case SSL_ERROR_SSL:
      if (ERR_GET_REASON(ERR_peek_last_error()) != SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        cause_ = CauseOfAlert(impl_->ssl.get());
        problem_ = "TLS failed: " + openssl::LastError();
      }
      return kIoBroken;
    default:
      // An end without close_notify is no end: somebody may have cut the connection.
      return kIoBroken;
  }
}

ssize_t TlsSession::Write(const char* data, std::size_t size) {
  ERR_clear_error();
  std::size_t sent = 0;
  if (SSL_write_ex(impl_->ssl.get(), data, size, &sent) == 1) return static_cast<ssize_t>(sent);
  switch (SSL_get_error(impl_->ssl.get(), 0)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return kIoWait;
    default:
      return kIoBroken;
  }
}

bool TlsSession::HasPending() const noexcept { return SSL_has_pending(impl_->ssl.get()) == 1; }

bool TlsSession::wants_to_write() const noexcept { return SSL_want_write(impl_->ssl.get()); }

void TlsSession::Close() noexcept {
  // A second call would read until the other side's, and drop what it still says.
  if ((SSL_get_shutdown(impl_->ssl.get()) & SSL_SENT_SHUTDOWN) != 0) return;
  ERR_clear_error();
  (void)SSL_shutdown(impl_->ssl.get());
  ERR_clear_error();
}

std::vector<std::string> TlsSession::PeerNames() const {
  std::vector<std::string> names;
  // Its first is the other side's own, and known before it is believed; of clients only.
  const STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(impl_->ssl.get());
  if (sk_X509_num(chain) <= 0) return names;
  X509* const own = sk_X509_value(chain, 0);
  auto* const all =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(own, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all, i);
    if (name->type == GEN_DNS) names.push_back(TextOf(name->d.dNSName));
    if (name->type == GEN_IPADD) names.push_back(AddressText(name->d.iPAddress));
  }
  if (all == nullptr) {
    std::array<char, 256> common{};
    const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(own), NID_commonName,
                                               common.data(), static_cast<int>(common.size()));
    if (size > 0) names.emplace_back(common.data(), static_cast<std::size_t>(size));
  }
  GENERAL_NAMES_free(all);
  ERR_clear_error();
  return names;
}

bool TlsSession::verified() const noexcept {
  const SSL* const ssl = impl_->ssl.get();
  const X509* const certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return false;
  // A session that is resumed brings a certificate that was good once.
  return X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0;
}

std::shared_ptr<const PeerCertificate> TlsSession::Certificate() const {
  return PeerCertificate::Read(SSL_get0_peer_certificate(impl_->ssl.get()));
}

}  // namespace tidegate::net
