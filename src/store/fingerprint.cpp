// SPDX-License-Identifier: Apache-2.0
#include "store/fingerprint.hpp"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tidegate {
namespace {

Fingerprint Join(const Fingerprint& a, const Fingerprint& b) noexcept {
  Fingerprint both{a.low ^ b.low, a.high ^ b.high};
  if (both.low == 0) both.low = 1;
  return both;
}

}  // namespace

Fingerprinter::Fingerprinter() {
  static_assert(8 * static_cast<std::size_t>(Role::kSlotTag) + kSecretOfRole <=
                std::tuple_size_v<decltype(secret_)>);
  static_assert(kSecretOfRole >= XXH3_SECRET_SIZE_MIN);
  // The kernel's randomness; at most 256 bytes at once.
  if (getentropy(secret_.data(), secret_.size()) != 0) {
    throw std::system_error(errno, std::generic_category(), "getentropy");
  }
}

Fingerprint Fingerprinter::Hash(std::string_view text, Role role) const noexcept {
  const XXH128_hash_t hash = XXH3_128bits_withSecret(
      text.data(), text.size(), secret_.data() + 8 * static_cast<std::size_t>(role), kSecretOfRole);
  return {hash.low64, hash.high64};
}

Fingerprint Fingerprinter::Rule(Algorithm algorithm, std::string_view rule) const noexcept {
  return Hash(rule, static_cast<Role>(static_cast<int>(Role::kRule) + static_cast<int>(algorithm)));
}

Fingerprint Fingerprinter::Key(Algorithm algorithm, std::string_view rule,
                               std::string_view identity) const noexcept {
  return Join(Hash(identity, Role::kIdentity), Rule(algorithm, rule));
}

Fingerprint Fingerprinter::Tagged(const Fingerprint& key, std::string_view tag) const noexcept {
  return Join(Hash(tag, Role::kSlotTag), key);
}

Fingerprint Fingerprinter::Overflow(const Quota& quota, Mode mode,
                                    std::string_view rule) const noexcept {
  // The limit of a concurrency quota is not hashed, so that a lease can be released after the limit
  // has changed.
  const bool leases = quota.algorithm() == Algorithm::kConcurrency;
  const std::array<std::int64_t, 4> shape = {quota.period().count(), static_cast<int>(mode),
                                             leases ? 0 : quota.limit(),
                                             leases ? 0 : quota.capacity()};
  const std::string_view bytes(reinterpret_cast<const char*>(shape.data()), sizeof(shape));
  return Join(Rule(quota.algorithm(), rule), Hash(bytes, Role::kShape));
}

Fingerprint Fingerprinter::Id(const Fingerprint& key, std::string_view id) const noexcept {
  return Join(Hash(id, Role::kId), key);
}

}  // namespace tidegate
