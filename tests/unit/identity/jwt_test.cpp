// SPDX-License-Identifier: Apache-2.0
#include "identity/jwt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>

#include <memory>
#include <string>

#include "unit/identity/jwt_signer.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

using namespace jwt;

class JwtTest : public testing::Test {
 protected:
  std::shared_ptr<const JwtVerifier> Make(JwtVerifier::Options options) {
    options.clock = &clock_;
    options.require_exp = false;
    auto made = JwtVerifier::Make(std::move(options));
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made.value();
  }
  /// Returns a verifier that accepts tokens without `exp`, so that most tests need none.
  std::shared_ptr<const JwtVerifier> WithSecret() { return Make({.hmac_secret = kSecret}); }
  std::shared_ptr<const JwtVerifier> RequiringExp() {
    return JwtVerifier::Make({.hmac_secret = kSecret, .clock = &clock_}).value();
  }

  std::string Claim(const JwtVerifier& verifier, std::string_view authorization,
                    std::string_view claim = "sub") {
    memory_.release();
    const auto value = verifier.Claim(authorization, claim, memory_);
    EXPECT_EQ(ERR_peek_error(), 0u) << "OpenSSL's error queue has a new error";
    return value ? std::string(*value) : "(none)";
  }

  std::int64_t Now() const {
    return std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch())
        .count();
  }

  ManualClock clock_;
  std::pmr::monotonic_buffer_resource memory_;
};

TEST_F(JwtTest, ReadsClaimOfSignedToken) {
  const auto verifier = WithSecret();
  EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":"alice"})")), "alice");
  EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":"a\u00fc\n\"\u0000x"})")),
            std::string("a\xc3\xbc\n\"\0x", 7));
  EXPECT_EQ(Claim(*verifier, Hs256(R"( { "a" : [1,{"sub":"no"}], "sub" : "alice" } )")), "alice");
}

TEST_F(JwtTest, VerifiesEveryHmacAlgorithm) {
  const auto verifier = WithSecret();
  const std::pair<const char*, const EVP_MD*> algorithms[] = {
      {"HS256", EVP_sha256()}, {"HS384", EVP_sha384()}, {"HS512", EVP_sha512()}};
  for (const auto& [name, digest] : algorithms) {
    const std::string header = std::string(R"({"typ":"JWT","alg":")") + name + "\"}";
    const auto sign = [digest = digest](const std::string& text) {
      return Mac(digest, kSecret, text);
    };
    EXPECT_EQ(Claim(*verifier, Bearer(header, R"({"sub":"alice"})", sign)), "alice") << name;
    const auto wrong = [digest = digest](const std::string& text) {
      return Mac(digest, kSecret + "x", text);
    };
    EXPECT_EQ(Claim(*verifier, Bearer(header, R"({"sub":"alice"})", wrong)), "(none)") << name;
  }
}

TEST_F(JwtTest, VerifiesEveryRsaAlgorithm) {
  const Signer signer = Signer::Rsa();
  const Signer other = Signer::Rsa();
  const auto verifier = Make({.public_key_pem = signer.PublicPem()});
  const std::pair<const char*, const EVP_MD*> algorithms[] = {
      {"RS256", EVP_sha256()}, {"RS384", EVP_sha384()}, {"RS512", EVP_sha512()}};
  for (const auto& [name, digest] : algorithms) {
    const std::string header = std::string(R"({"alg":")") + name + "\"}";
    const auto by = [digest = digest](const Signer& who) {
      return [digest, &who](const std::string& text) { return who.Sign(digest, text); };
    };
    EXPECT_EQ(Claim(*verifier, Bearer(header, R"({"sub":"alice"})", by(signer))), "alice") << name;
    EXPECT_EQ(Claim(*verifier, Bearer(header, R"({"sub":"alice"})", by(other))), "(none)") << name;
  }
}

TEST_F(JwtTest, VerifiesEcAlgorithmsOnTheirCurveOnly) {
  struct Case {
    const char* name;
    const char* curve;
    const EVP_MD* digest;
    std::size_t half;
  };
  const Case cases[] = {{"ES256", "P-256", EVP_sha256(), 32}, {"ES384", "P-384", EVP_sha384(), 48}};
  for (const auto& [name, curve, digest, half] : cases) {
    const Signer signer = Signer::Ec(curve);
    const auto verifier = Make({.public_key_pem = signer.PublicPem()});
    const auto sign = [&, digest = digest, half = half](const std::string& text) {
      return signer.Sign(digest, text, half);
    };
    const std::string header = std::string(R"({"alg":")") + name + "\"}";
    // In 20 signatures, r or s sometimes begins with a zero byte or a high bit.
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(Claim(*verifier, Bearer(header, R"({"sub":"alice"})", sign)), "alice") << name;
    }
    const auto other_name = std::string(name) == "ES256" ? "ES384" : "ES256";
    EXPECT_EQ(Claim(*verifier, Bearer(std::string(R"({"alg":")") + other_name + "\"}",
                                      R"({"sub":"alice"})", sign)),
              "(none)");
    const auto der = [&, digest = digest](const std::string& text) {
      return signer.Sign(digest, text);
    };
    EXPECT_EQ(Claim(*verifier, Bearer(header, R"({"sub":"alice"})", der)), "(none)")
        << "a signature in DER form was accepted";
    const auto zeros = [half = half](const std::string&) { return std::string(2 * half, '\0'); };
    EXPECT_EQ(Claim(*verifier, Bearer(header, R"({"sub":"alice"})", zeros)), "(none)");
  }
}

TEST_F(JwtTest, NeverUsesPublicKeyAsSecret) {
  const Signer signer = Signer::Rsa();
  const auto verifier = Make({.public_key_pem = signer.PublicPem()});
  for (const std::string& secret : {signer.PublicPem(), std::string()}) {
    const auto forge = [&](const std::string& text) { return Mac(EVP_sha256(), secret, text); };
    EXPECT_EQ(Claim(*verifier, Bearer(R"({"alg":"HS256"})", R"({"sub":"eve"})", forge)), "(none)");
    EXPECT_EQ(Claim(*verifier, Bearer(R"({"alg":"RS256"})", R"({"sub":"eve"})", forge)), "(none)");
  }
  const auto ours = [&](const std::string& text) { return signer.Sign(EVP_sha256(), text); };
  EXPECT_EQ(Claim(*WithSecret(), Bearer(R"({"alg":"RS256"})", R"({"sub":"eve"})", ours)), "(none)");
}

TEST_F(JwtTest, RejectsUnsupportedAlgorithms) {
  const auto verifier = WithSecret();
  for (const char* header :
       {R"({"alg":"none"})", R"({"alg":"None"})", R"({"alg":""})", R"({"alg":"hs256"})",
        R"({"alg":"PS256"})", R"({"alg":"ES512"})", R"({"alg":null})", R"({"alg":["HS256"]})",
        R"({})", R"({"typ":"JWT"})", R"([])", R"("HS256")", R"({"alg":"HS256\u0000"})"}) {
    EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":"eve"})", header)), "(none)") << header;
  }
  const std::string unsigned_token =
      Bearer(R"({"alg":"none"})", R"({"sub":"eve"})", [](const std::string&) { return ""; });
  EXPECT_EQ(Claim(*verifier, unsigned_token), "(none)");
}

TEST_F(JwtTest, RejectsCriticalExtensions) {
  const auto verifier = WithSecret();
  for (const char* header : {R"({"alg":"HS256","crit":["b64"],"b64":false})",
                             R"({"alg":"HS256","crit":[]})", R"({"crit":null,"alg":"HS256"})"}) {
    EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":"eve"})", header)), "(none)") << header;
  }
}

TEST_F(JwtTest, RejectsDuplicateNames) {
  const auto verifier = WithSecret();
  EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":"eve"})", R"({"alg":"HS256","alg":"HS256"})")),
            "(none)");
  for (const char* payload :
       {R"({"sub":"eve","sub":"alice"})", R"({"sub":"eve","s\u0075b":"a"})",
        R"({"sub":"eve","x":{"a":1,"a":1}})", R"({"sub":"eve","x":[{"a":1,"b":2,"a":1}]})"}) {
    EXPECT_EQ(Claim(*verifier, Hs256(payload)), "(none)") << payload;
  }
  EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":"ok","x":{"sub":1},"y":[{"sub":1},{"sub":1}]})")),
            "ok");
}

TEST_F(JwtTest, RejectsInvalidJsonPayloads) {
  const auto verifier = WithSecret();
  for (const char* payload :
       {"", " ", "null", "[]", "\"sub\"", "{", R"({"sub":"a"}})", R"({"sub":"a"} x)",
        R"({"sub":"a",})", R"({'sub':'a'})", R"({"sub":"a"}{})", R"({"sub":"\ud800"})",
        "{\"sub\":\"\xff\"}", "{\"sub\":\"a\nb\"}", R"({"sub":"a" /* */})", "[{\"sub\":\"a\"}]"}) {
    EXPECT_EQ(Claim(*verifier, Hs256(payload)), "(none)") << payload;
  }
  const auto nested = [](std::size_t depth) {
    return R"({"sub":"a","x":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(Claim(*verifier, Hs256(nested(15))), "a");
  EXPECT_EQ(Claim(*verifier, Hs256(nested(16))), "(none)");
  EXPECT_EQ(Claim(*verifier, Hs256(nested(2000))), "(none)");
}

TEST_F(JwtTest, ReadsOnlyStringAndIntegerClaims) {
  const auto verifier = WithSecret();
  const std::pair<const char*, const char*> cases[] = {
      {"42", "42"},
      {"-7", "-7"},
      {"9223372036854775807", "9223372036854775807"},
      {"18446744073709551615", "18446744073709551615"},
      {"1.5", "(none)"},
      {"1e3", "(none)"},
      {"18446744073709551616", "(none)"},
      {"true", "(none)"},
      {"null", "(none)"},
      {"[\"a\"]", "(none)"},
      {"{\"a\":\"b\"}", "(none)"},
  };
  for (const auto& [json, text] : cases) {
    EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":)" + std::string(json) + "}")), text) << json;
  }
  EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":"a"})"), "tenant"), "(none)");
  const std::string longer(3000, 'x');
  EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":")" + longer + "\"}")), longer);
}

TEST_F(JwtTest, RejectsInvalidBase64Url) {
  const auto verifier = WithSecret();
  const std::string good = Hs256(R"({"sub":"alice"})");
  ASSERT_EQ(Claim(*verifier, good), "alice");
  EXPECT_EQ(Claim(*verifier, good + "="), "(none)");
  EXPECT_EQ(Claim(*verifier, good + "A"), "(none)");
  EXPECT_EQ(Claim(*verifier, good.substr(0, good.size() - 1)), "(none)");
  // The last of 43 characters has two unused bits, so that another text encodes the same signature.
  std::string twin = good;
  twin.back() = static_cast<char>(twin.back() + 1);
  EXPECT_EQ(Claim(*verifier, twin), "(none)");
  for (const char junk : {'+', '/', '=', ' ', '\n', '\0', '\xff', '%'}) {
    std::string bad = good;
    bad[bad.size() - 5] = junk;
    EXPECT_EQ(Claim(*verifier, bad), "(none)") << junk;
  }
  // The payload has an invalid character but a valid signature.
  const std::string text =
      Base64Url(R"({"alg":"HS256"})") + "." + Base64Url(R"({"sub":"eve"})") + "=";
  EXPECT_EQ(Claim(*verifier, "Bearer " + text + "." + Base64Url(Mac(EVP_sha256(), kSecret, text))),
            "(none)");
}

TEST_F(JwtTest, RejectsTokenWithAnyChangedCharacter) {
  const auto verifier = WithSecret();
  const std::string good = Hs256(R"({"sub":"alice"})");
  for (std::size_t i = 7; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = bad[i] == 'A' ? 'B' : 'A';
    if (bad != good) {
      EXPECT_EQ(Claim(*verifier, bad), "(none)") << i;
    }
  }
}

TEST_F(JwtTest, ReadsOnlyBearerTokensOfThreeParts) {
  const auto verifier = WithSecret();
  const std::string token = Hs256(R"({"sub":"alice"})").substr(7);
  EXPECT_EQ(Claim(*verifier, "bearer  " + token + " "), "alice");
  for (const std::string& text : std::initializer_list<std::string>{
           token, "Basic " + token, "Bearer" + token, "Bearer ", std::string("Bearer"),
           std::string(), "Bearer " + token + ".x", "Bearer a.b", "Bearer ..", "Bearer .",
           "Bearer a.b.c.d.e", std::string("Bearer ").append(token).append(" ").append(token),
           "Bearer ." + token}) {
    EXPECT_EQ(Claim(*verifier, text), "(none)") << text;
  }
}

TEST_F(JwtTest, IgnoresTokensAbove8KiB) {
  const auto verifier = WithSecret();
  const auto sized = [](std::size_t n) {
    return Hs256(R"({"sub":"a","x":")" + std::string(n, 'x') + "\"}");
  };
  std::size_t n = 6000;
  while (sized(n + 1).size() - 7 <= 8192) ++n;
  EXPECT_EQ(Claim(*verifier, sized(n)), "a");
  EXPECT_EQ(Claim(*verifier, sized(n + 3)), "(none)");
  EXPECT_EQ(Claim(*verifier, sized(1'000'000)), "(none)");
}

TEST_F(JwtTest, ExpiryHas30SecondsOfLeeway) {
  const auto verifier = WithSecret();
  const auto exp = [&](std::int64_t offset) {
    return Claim(*verifier, Hs256(R"({"sub":"a","exp":)" + std::to_string(Now() + offset) + "}"));
  };
  EXPECT_EQ(exp(60), "a");
  EXPECT_EQ(exp(-29), "a");
  EXPECT_EQ(exp(-30), "(none)");
  EXPECT_EQ(exp(-3600), "(none)");
  const std::string token = Hs256(R"({"sub":"a","exp":)" + std::to_string(Now()) + ".5}");
  EXPECT_EQ(Claim(*verifier, token), "a");
  clock_.Advance(30s);
  EXPECT_EQ(Claim(*verifier, token), "a") << "the token was rejected half a second too early";
  clock_.Advance(500ms);
  EXPECT_EQ(Claim(*verifier, token), "(none)");
  for (const char* odd :
       {"\"9999999999\"", "null", "[9999999999]", "-1", "0", "-1e400", "1e400", "1e999"}) {
    EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":"a","exp":)" + std::string(odd) + "}")), "(none)")
        << odd;
  }
}

TEST_F(JwtTest, RejectsTokensWithoutExpiryUnlessAllowed) {
  EXPECT_EQ(Claim(*RequiringExp(), Hs256(R"({"sub":"a"})")), "(none)");
  EXPECT_EQ(Claim(*RequiringExp(), Hs256(R"({"sub":"a","nbf":0})")), "(none)");
  EXPECT_EQ(Claim(*RequiringExp(), Hs256(R"({"sub":"a","x":{"exp":9999999999}})")), "(none)");
  EXPECT_EQ(Claim(*RequiringExp(), Hs256(R"({"sub":"a","exp":9999999999})")), "a");
  EXPECT_EQ(Claim(*WithSecret(), Hs256(R"({"sub":"a"})")), "a");
}

TEST_F(JwtTest, NotBeforeHas30SecondsOfLeeway) {
  const auto verifier = WithSecret();
  const auto nbf = [&](std::int64_t offset) {
    return Claim(*verifier, Hs256(R"({"sub":"a","nbf":)" + std::to_string(Now() + offset) + "}"));
  };
  EXPECT_EQ(nbf(-60), "a");
  EXPECT_EQ(nbf(30), "a");
  EXPECT_EQ(nbf(31), "(none)");
  for (const char* odd : {"\"0\"", "null", "18446744073709551615", "1e400", "-1e400", "-1e999"}) {
    EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":"a","nbf":)" + std::string(odd) + "}")), "(none)")
        << odd;
  }
}

TEST_F(JwtTest, RejectsOtherIssuers) {
  const auto verifier = Make({.hmac_secret = kSecret, .issuer = "https://id.example"});
  EXPECT_EQ(Claim(*verifier, Hs256(R"({"sub":"a","iss":"https://id.example"})")), "a");
  for (const char* payload :
       {R"({"sub":"a"})", R"({"sub":"a","iss":"https://id.example/"})",
        R"({"sub":"a","iss":["https://id.example"]})", R"({"sub":"a","iss":null})"}) {
    EXPECT_EQ(Claim(*verifier, Hs256(payload)), "(none)") << payload;
  }
}

TEST_F(JwtTest, AcceptsAudienceAsStringOrArray) {
  const auto verifier = Make({.hmac_secret = kSecret, .audience = "api"});
  for (const char* payload :
       {R"({"sub":"a","aud":"api"})", R"({"sub":"a","aud":["web","api"],"z":["x"]})",
        R"({"z":["x"],"aud":[1,"api"],"sub":"a"})"}) {
    EXPECT_EQ(Claim(*verifier, Hs256(payload)), "a") << payload;
  }
  for (const char* payload :
       {R"({"sub":"a"})", R"({"sub":"a","aud":"web"})", R"({"sub":"a","aud":[]})",
        R"({"sub":"a","aud":["web"],"x":["api"]})", R"({"sub":"a","aud":[["api"]]})",
        R"({"sub":"a","aud":{"api":"api"}})", R"({"sub":"a","aud":[{"x":"api"}]})",
        R"({"sub":"a","x":["api"],"aud":null})", R"({"sub":"a","aud":"apix"})"}) {
    EXPECT_EQ(Claim(*verifier, Hs256(payload)), "(none)") << payload;
  }
}

TEST_F(JwtTest, UnverifiedModeStillChecksExpiry) {
  const auto verifier = Make({.unverified = true});
  const auto anything = [](const std::string&) { return "x"; };
  EXPECT_EQ(Claim(*verifier, Bearer(R"({"alg":"none"})", R"({"sub":"a"})", anything)), "a");
  EXPECT_EQ(Claim(*verifier, Bearer("junk", R"({"sub":"a"})", anything)), "a");
  EXPECT_EQ(Claim(*verifier, Bearer("{}", R"({"sub":"a","exp":1})", anything)), "(none)");
  EXPECT_EQ(Claim(*verifier, Bearer("{}", R"({"sub":"a","sub":"b"})", anything)), "(none)");
}

TEST_F(JwtTest, RejectsUnsuitableKeys) {
  const auto why = [](JwtVerifier::Options options) {
    const auto made = JwtVerifier::Make(std::move(options));
    return made ? "(made)" : made.error().message;
  };
  EXPECT_THAT(why({}), HasSubstr("exactly one of"));
  EXPECT_THAT(why({.hmac_secret = kSecret, .unverified = true}), HasSubstr("exactly one of"));
  EXPECT_THAT(why({.hmac_secret = kSecret, .public_key_pem = "x"}), HasSubstr("exactly one of"));
  EXPECT_THAT(why({.hmac_secret = "short"}), HasSubstr("at least 32"));
  EXPECT_THAT(why({.public_key_pem = "junk"}), HasSubstr("BEGIN PUBLIC KEY"));
  const Signer small = Signer::Rsa(1024);
  EXPECT_THAT(why({.public_key_pem = small.PublicPem()}), HasSubstr("2048"));
  EXPECT_THAT(why({.public_key_pem = small.PrivatePem()}), HasSubstr("BEGIN PUBLIC KEY"));
  EXPECT_THAT(why({.hmac_secret = small.PublicPem()}), HasSubstr("PEM"));
  EXPECT_THAT(why({.public_key_pem = Signer::Ec("secp256k1").PublicPem()}), HasSubstr("P-256"));
  EXPECT_THAT(why({.public_key_pem = Signer::Ec("P-521").PublicPem()}), HasSubstr("P-256"));
}

TEST_F(JwtTest, ReturnsNoClaimWhenMemoryIsExhausted) {
  const auto verifier = WithSecret();
  const std::string token = Hs256(R"({"sub":"alice"})");
  EXPECT_EQ(verifier->Claim(token, "sub", *std::pmr::null_memory_resource()), std::nullopt);
}

}  // namespace
}  // namespace tidegate
