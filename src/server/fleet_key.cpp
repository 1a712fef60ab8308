// SPDX-License-Identifier: Apache-2.0
#include "server/fleet_key.hpp"

#include <random>
#include <string_view>

#include "rules/keyed_hash.hpp"

namespace tidegate {

std::string RandomKey() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::string key(64, '\0');
  for (char& c : key) c = kDigits[random() % 16];
  return key;
}

std::string KeyId(const std::string& key) {
  std::string id(KeyedHash::kTextSize, '\0');
  KeyedHash::WriteText(KeyedHash(key)("tidegate: which key is this?"), id.data());
  return id;
}

}  // namespace tidegate
