// SPDX-License-Identifier: Apache-2.0
#include "net/tls_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <climits>
#include <utility>

namespace tidegate::net {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* value) const noexcept {
    Free(value);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Ssl = std::unique_ptr<SSL, Freed<SSL_free>>;

Bio Memory(const std::string& pem) {
  return Bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(std::min<std::size_t>(pem.size(), INT_MAX))));
}

std::string LastError() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unknown reason" : reason;
}

std::unexpected<Error> Bad(std::string what) {
  return std::unexpected(Error{ErrorCode::kBadConfig, std::move(what) + ": " + LastError()});
}

Result<void> Trust(SSL_CTX* context, const std::string& pem) {
  if (pem.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) != 1) return Bad("the system has no authorities");
    return {};
  }
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  const Bio bio = Memory(pem);
  int count = 0;
  while (const Certificate one{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(store, one.get()) != 1) return Bad("an authority cannot be used");
    ++count;
  }
  if (count == 0) return Bad("`ca` holds no certificate in PEM form");
  ERR_clear_error();  // The end of the file is an error to OpenSSL.
  return {};
}

/// Without it OpenSSL would ask at the terminal.
int NoPassphrase(char*, int, int, void*) { return 0; }

Result<void> Present(SSL_CTX* context, const TlsClient::Options& options) {
  if (options.certificate_pem.empty()) return {};
  const Bio bio = Memory(options.certificate_pem);
  const Certificate own{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)};
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) {
    return Bad("`certificate` cannot be used");
  }
  while (Certificate next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(context, next.get()) != 1) return Bad("the chain cannot be used");
    (void)next.release();
  }
  ERR_clear_error();
  const Bio key_bio = Memory(options.key_pem);
  const Key key{PEM_read_bio_PrivateKey(key_bio.get(), nullptr, NoPassphrase, nullptr)};
  if (key == nullptr || SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return Bad("`key` cannot be used");
  }
  if (SSL_CTX_check_private_key(context) != 1) return Bad("`key` does not fit `certificate`");
  return {};
}

bool IsAddress(const std::string& name) {
  in6_addr ignored{};
  return inet_pton(AF_INET, name.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &ignored) == 1;
}

}  // namespace

struct TlsSession::Impl {
  Ssl ssl;
};
struct TlsClient::Impl {
  Context context;
};

TlsSession::TlsSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsSession::~TlsSession() = default;

TlsSession::Shake TlsSession::Handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(impl_->ssl.get());
  if (done == 1) return Shake::kDone;
  const int why = SSL_get_error(impl_->ssl.get(), done);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return Shake::kMore;
  const long verified = SSL_get_verify_result(impl_->ssl.get());
  problem_ = verified != X509_V_OK && SSL_get_verify_mode(impl_->ssl.get()) != SSL_VERIFY_NONE
                 ? std::string("its certificate is not accepted: ") +
                       X509_verify_cert_error_string(verified)
                 : "the TLS handshake failed: " + LastError();
  ERR_clear_error();
  return Shake::kFailed;
}

ssize_t TlsSession::Read(char* data, std::size_t size) {
  ERR_clear_error();
  std::size_t got = 0;
  if (SSL_read_ex(impl_->ssl.get(), data, size, &got) == 1) return static_cast<ssize_t>(got);
  switch (SSL_get_error(impl_->ssl.get(), 0)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return kIoWait;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
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

TlsClient::TlsClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsClient::~TlsClient() = default;

Result<std::shared_ptr<const TlsClient>> TlsClient::Make(const Options& options) {
  auto impl = std::make_unique<Impl>();
  impl->context.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const context = impl->context.get();
  if (context == nullptr) return Bad("OpenSSL gives no context");
  (void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  (void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  (void)SSL_CTX_set_alpn_protos(context, kHttp11, sizeof kHttp11 - 1);
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (auto trusted = Trust(context, options.ca_pem); !trusted) {
    return std::unexpected(std::move(trusted.error()));
  }
  if (auto presented = Present(context, options); !presented) {
    return std::unexpected(std::move(presented.error()));
  }
  return std::shared_ptr<const TlsClient>(new TlsClient(std::move(impl)));
}

std::unique_ptr<TlsSession> TlsClient::NewSession(int socket, const std::string& name) const {
  auto impl = std::make_unique<TlsSession::Impl>();
  impl->ssl.reset(SSL_new(impl_->context.get()));
  SSL* const ssl = impl->ssl.get();
  if (ssl == nullptr || SSL_set_fd(ssl, socket) != 1) return nullptr;
  if (IsAddress(name)) {  // RFC 6066, 3: no address is a server name.
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) != 1) return nullptr;
  } else {
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (SSL_set_tlsext_host_name(ssl, name.c_str()) != 1) return nullptr;
    if (SSL_set1_host(ssl, name.c_str()) != 1) return nullptr;
  }
  SSL_set_connect_state(ssl);
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(impl)));
}

}  // namespace tidegate::net
