// SPDX-License-Identifier: Apache-2.0
#include "net/tls_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/x509v3.h>

#include <utility>

#include "net/tls_session_impl.hpp"

namespace tidegate::net {
namespace {

bool IsAddress(const std::string& name) {
  in6_addr ignored{};
  return inet_pton(AF_INET, name.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &ignored) == 1;
}

}  // namespace

struct TlsClient::Impl {
  openssl::Context context;
};

TlsClient::TlsClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsClient::~TlsClient() = default;

Result<std::shared_ptr<const TlsClient>> TlsClient::Make(const Options& options) {
  auto impl = std::make_unique<Impl>();
  impl->context = openssl::NewContext(TLS_client_method());
  SSL_CTX* const context = impl->context.get();
  if (context == nullptr) return openssl::Bad("OpenSSL gives no context");
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  if (options.http) (void)SSL_CTX_set_alpn_protos(context, kHttp11, sizeof kHttp11 - 1);
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (options.ca_pem.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) != 1) {
      return openssl::Bad("the system has no authorities");
    }
  } else if (auto trusted = openssl::Trust(context, options.ca_pem); !trusted) {
    return std::unexpected(std::move(trusted.error()));
  }
  if (!options.certificate_pem.empty()) {
    auto presented = openssl::Present(context, options.certificate_pem, options.key_pem);
    if (!presented) return std::unexpected(std::move(presented.error()));
  }
  return std::shared_ptr<const TlsClient>(new TlsClient(std::move(impl)));
}

std::unique_ptr<TlsSession> TlsClient::NewSession(int socket, const std::string& name) const {
  auto impl = TlsSession::Impl::Make(impl_->context.get(), socket);
  if (impl == nullptr) return nullptr;
  SSL* const ssl = impl->ssl.get();
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
