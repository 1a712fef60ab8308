// SPDX-License-Identifier: Apache-2.0
#include "net/tls_session.hpp"

#include <openssl/sslerr.h>

#include <utility>

#include "net/tls_session_impl.hpp"

namespace tidegate::net {
namespace {

/// Of one call to OpenSSL, which goes on reading while what comes is no data: key updates, refused
/// renegotiations, a greeting in bits of a byte. Nobody else would have his turn meanwhile. A
/// handshake has a dozen, data one.
constexpr int kMostRecords = 64;

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
  problem_ = verified != X509_V_OK && SSL_get_verify_mode(impl_->ssl.get()) != SSL_VERIFY_NONE
                 ? std::string("its certificate is not accepted: ") +
                       X509_verify_cert_error_string(verified)
                 : "the TLS handshake failed: " + openssl::LastError();
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

void TlsSession::Close() noexcept {
  // A second call would read until the other side's, and drop what it still says.
  if ((SSL_get_shutdown(impl_->ssl.get()) & SSL_SENT_SHUTDOWN) != 0) return;
  ERR_clear_error();
  (void)SSL_shutdown(impl_->ssl.get());
  ERR_clear_error();
}

bool TlsSession::verified() const noexcept {
  const SSL* const ssl = impl_->ssl.get();
  const X509* const certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return false;
  // A session that is resumed brings a certificate that was good once.
  return X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0;
}

}  // namespace tidegate::net
