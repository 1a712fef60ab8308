// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tidegate/error.hpp"

namespace tidegate {

/// Succeeds if `pem` contains one or more readable certificates. The error shows no part of `pem`.
[[nodiscard]] Result<void> CheckCertificates(std::string_view pem);

/// Succeeds if `key_pem` is a private key without a passphrase, and the first certificate of
/// `certificate_pem` belongs to it. REQUIRES: CheckCertificates succeeded for `certificate_pem`.
[[nodiscard]] Result<void> CheckKey(std::string_view certificate_pem, std::string_view key_pem);

/// Returns a message about the first certificate in `pem` that is not valid now, if there is one.
[[nodiscard]] std::optional<std::string> OutOfDate(std::string_view pem);

/// As CheckCertificates, for certificate revocation lists (CRLs).
[[nodiscard]] Result<void> CheckCrls(std::string_view pem);

/// As OutOfDate, for CRLs. REQUIRES: CheckCrls succeeded.
[[nodiscard]] std::optional<std::string> CrlOutOfDate(std::string_view pem);

}  // namespace tidegate
