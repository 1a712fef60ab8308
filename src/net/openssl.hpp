// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <utility>

#include "tidegate/error.hpp"

// What the files that speak to OpenSSL share; only they include this.

namespace tidegate::net::openssl {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* value) const noexcept {
    Free(value);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Crl = std::unique_ptr<X509_CRL, Freed<X509_CRL_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Ssl = std::unique_ptr<SSL, Freed<SSL_free>>;

[[nodiscard]] std::string LastError();
[[nodiscard]] std::unexpected<Error> Bad(std::string what);

/// Over what `pem` holds, which must outlive it.
[[nodiscard]] Bio Memory(const std::string& pem);
/// What clients and servers have in common.
[[nodiscard]] Context NewContext(const SSL_METHOD* method);
/// The authorities in `pem`.
[[nodiscard]] Result<void> Trust(SSL_CTX* context, const std::string& pem);
/// A certificate with its chain, and its key: what this side shows.
[[nodiscard]] Result<void> Present(SSL_CTX* context, const std::string& certificate_pem,
                                   const std::string& key_pem);

}  // namespace tidegate::net::openssl
