// SPDX-License-Identifier: Apache-2.0
#include "identity/keyed_hash.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <random>
#include <string>

namespace tidegate {
namespace {

std::string Hex(const KeyedHash::Digest& digest) {
  std::string hex;
  for (const std::uint8_t byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

// The vectors are from RFC 4231, truncated to 128 bits.
TEST(KeyedHashTest, MatchesRfc4231Vectors) {
  struct Vector {
    std::string key;
    std::string value;
    const char* digest;
  };
  std::string counted;
  for (char c = 1; c <= 25; ++c) counted += c;
  const Vector vectors[] = {
      {std::string(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b"},
      {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c7"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'), "773ea91e36800e46854db8ebd09181a7"},
      {counted, std::string(50, '\xcd'), "82558a389a443c0ea4cc819899f2083a"},
      {std::string(20, '\x0c'), "Test With Truncation", "a3b6167473100ee06e0c796c2955552b"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f"},
      {std::string(131, '\xaa'),
       "This is a test using a larger than block-size key and a larger than block-size data. The "
       "key needs to be hashed before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944"},
  };
  for (const auto& [key, value, digest] : vectors) EXPECT_EQ(Hex(KeyedHash(key)(value)), digest);
}

TEST(KeyedHashTest, AgreesWithOpenSsl) {
  std::mt19937_64 random(11);
  const auto bytes = [&](std::size_t size) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::string key = bytes(1 + random() % 150);
    const std::string value = bytes(random() % 300);
    std::array<unsigned char, 32> whole{};
    unsigned size = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(value.data()), value.size(), whole.data(), &size);
    const KeyedHash::Digest digest = KeyedHash(key)(value);
    ASSERT_TRUE(std::equal(digest.begin(), digest.end(), whole.begin()));
  }
}

TEST(KeyedHashTest, DependsOnItsKey) {
  const auto before = KeyedHash("0123456789abcdef")("x");
  EXPECT_EQ(KeyedHash("0123456789abcdef")("x"), before);
  EXPECT_NE(KeyedHash("0123456789abcdeg")("x"), before);
}

TEST(KeyedHashTest, PrintsBase64UrlWithoutPadding) {
  const auto text = [](const KeyedHash::Digest& digest) {
    std::string out(KeyedHash::kTextSize, '?');
    KeyedHash::WriteText(digest, out.data());
    return out;
  };
  KeyedHash::Digest digest{};
  EXPECT_EQ(text(digest), std::string(22, 'A'));
  digest.fill(0xff);
  EXPECT_EQ(text(digest), std::string(21, '_') + "w");
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    for (std::uint8_t& byte : digest) byte = static_cast<std::uint8_t>(random());
    std::array<unsigned char, 25> known{};
    EVP_EncodeBlock(known.data(), digest.data(), 16);
    std::string expected(reinterpret_cast<const char*>(known.data()), 22);
    std::replace(expected.begin(), expected.end(), '+', '-');
    std::replace(expected.begin(), expected.end(), '/', '_');
    ASSERT_EQ(text(digest), expected);
  }
}

}  // namespace
}  // namespace tidegate
