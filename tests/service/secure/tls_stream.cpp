// SPDX-License-Identifier: Apache-2.0
#include "service/secure/tls_stream.hpp"

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <array>
#include <csignal>

namespace tidegate::service {
namespace {

using Bio = std::unique_ptr<BIO, decltype([](BIO* bio) { BIO_free_all(bio); })>;
using Certificate = std::unique_ptr<X509, decltype([](X509* one) { X509_free(one); })>;
using Key = std::unique_ptr<EVP_PKEY, decltype([](EVP_PKEY* key) { EVP_PKEY_free(key); })>;

Bio Reading(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Certificate ReadCertificate(const std::string& pem) {
  return Certificate(PEM_read_bio_X509(Reading(pem).get(), nullptr, nullptr, nullptr));
}

SSL_CTX* MakeContext(const TlsOptions& options) {
  // OpenSSL writes without MSG_NOSIGNAL.
  std::signal(SIGPIPE, SIG_IGN);
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  // Allows old versions on this side, so that it is the server that refuses them.
  if (options.least < TLS1_2_VERSION) SSL_CTX_set_security_level(context, 0);
  SSL_CTX_set_min_proto_version(context, options.least);
  SSL_CTX_set_max_proto_version(context, options.most);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT);
  const Certificate trusted = ReadCertificate(Ours().pem());
  EXPECT_EQ(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), trusted.get()), 1);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (options.own) {
    const Certificate own = ReadCertificate(options.own->certificate);
    const Key key(
        PEM_read_bio_PrivateKey(Reading(options.own->key).get(), nullptr, nullptr, nullptr));
    EXPECT_EQ(SSL_CTX_use_certificate(context, own.get()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context, key.get()), 1);
  }
  if (!options.suites.empty()) {
    EXPECT_EQ(SSL_CTX_set_cipher_list(context, options.suites.c_str()), 1) << options.suites;
  }
  if (!options.signatures.empty()) {
    EXPECT_EQ(SSL_CTX_set1_sigalgs_list(context, options.signatures.c_str()), 1);
  }
  return context;
}

void Offer(SSL* ssl, const std::vector<std::string>& protocols) {
  std::string list;
  for (const std::string& name : protocols) {
    list += static_cast<char>(name.size());
    list += name;
  }
  if (list.empty()) return;
  EXPECT_EQ(SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(list.data()),
                                static_cast<unsigned>(list.size())),
            0);
}

/// Holds sent bytes back until the cork is removed; the system sends them after 200 ms at the
/// latest.
void Cork(int socket, int on) { setsockopt(socket, IPPROTO_TCP, TCP_CORK, &on, sizeof on); }

/// Returns a BIO method that sends each byte separately.
const BIO_METHOD* Trickle() {
  static BIO_METHOD* const kMethod = [] {
    BIO_METHOD* const method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "trickle");
    BIO_meth_set_create(method, [](BIO* bio) {
      BIO_set_init(bio, 1);
      return 1;
    });
    BIO_meth_set_write(method, [](BIO* bio, const char* data, int size) {
      const int fd = *static_cast<const int*>(BIO_get_data(bio));
      for (int i = 0; i < size; ++i) {
        if (::send(fd, data + i, 1, MSG_NOSIGNAL) != 1) return -1;
      }
      return size;
    });
    BIO_meth_set_read(method, [](BIO* bio, char* data, int size) {
      const int fd = *static_cast<const int*>(BIO_get_data(bio));
      return static_cast<int>(::recv(fd, data, static_cast<std::size_t>(size), 0));
    });
    BIO_meth_set_ctrl(method,
                      [](BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1L : 0L; });
    return method;
  }();
  return kMethod;
}

}  // namespace

const behaviour::Authority& Ours() {
  static const behaviour::Authority kOurs("our authority");
  return kOurs;
}

const behaviour::Authority& Theirs() {
  static const behaviour::Authority kTheirs("another authority");
  return kTheirs;
}

TlsStream::TlsStream(const net::Endpoint& to, const TlsOptions& options)
    : test::Stream(to, options.receive_buffer), socket_(fd()), context_(MakeContext(options)) {
  if (options.trickle) {
    for (const char byte : options.before) Stream::Send({&byte, 1});
    // Sends these bytes in one segment with the following ones.
  } else if (!options.before.empty()) {
    (void)::send(fd(), options.before.data(), options.before.size(), MSG_NOSIGNAL | MSG_MORE);
  }
  ERR_clear_error();
  ssl_ = SSL_new(context_);
  SSL_set_fd(ssl_, fd());
  if (options.trickle) {
    BIO* const bio = BIO_new(Trickle());
    BIO_set_data(bio, &socket_);
    SSL_set_bio(ssl_, bio, bio);
  }
  if (!options.server_name.empty()) SSL_set_tlsext_host_name(ssl_, options.server_name.c_str());
  Offer(ssl_, options.protocols);
  if (options.ticket) SSL_set_session(ssl_, options.ticket.get());
  if (options.hold) Cork(fd(), 1);
  shaken_ = SSL_connect(ssl_) == 1;
  if (!shaken_) NoteProblem();
}

TlsStream::~TlsStream() {
  SSL_free(ssl_);
  SSL_CTX_free(context_);
  ERR_clear_error();
}

void TlsStream::NoteProblem() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_peek_last_error(), text.data(), text.size());
  problem_ = text.data();
}

bool TlsStream::Send(std::string_view bytes) {
  std::size_t sent = 0;
  ERR_clear_error();
  const bool taken = bytes.empty() || SSL_write_ex(ssl_, bytes.data(), bytes.size(), &sent) == 1;
  Cork(fd(), 0);
  return taken;
}

bool TlsStream::UpdateKeysNow() {
  return SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(ssl_) == 1;
}

bool TlsStream::UpdateKeys() { return SSL_key_update(ssl_, SSL_KEY_UPDATE_REQUESTED) == 1; }

test::Stream::Got TlsStream::Receive(std::string& to) {
  std::array<char, 16384> buffer;
  std::size_t got = 0;
  ERR_clear_error();
  const int result = SSL_read_ex(ssl_, buffer.data(), buffer.size(), &got);
  if (result == 1) {
    to.append(buffer.data(), got);
    return Got::kBytes;
  }
  const int error = SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_ZERO_RETURN) return Got::kEnd;
  if (error == SSL_ERROR_WANT_READ) return Got::kNothing;
  NoteProblem();
  return Got::kCut;
}

void TlsStream::EndSending() {
  ERR_clear_error();
  (void)SSL_shutdown(ssl_);
  Stream::EndSending();
}

std::string TlsStream::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_, &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string TlsStream::certificate() const {
  X509* const one = SSL_get0_peer_certificate(ssl_);
  if (one == nullptr) return {};
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(one), NID_commonName, name.data(),
                            static_cast<int>(name.size()));
  return name.data();
}

bool TlsStream::rsa() const {
  X509* const one = SSL_get0_peer_certificate(ssl_);
  return one != nullptr && EVP_PKEY_get_base_id(X509_get0_pubkey(one)) == EVP_PKEY_RSA;
}

TlsTicket TlsStream::ticket() const {
  // A copy, because OpenSSL invalidates the session of a connection that ends without close_notify.
  return {SSL_SESSION_dup(SSL_get0_session(ssl_)),
          [](SSL_SESSION* session) { SSL_SESSION_free(session); }};
}

}  // namespace tidegate::service
