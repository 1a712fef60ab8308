// SPDX-License-Identifier: Apache-2.0
#include "gateway/fields.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidegate {
namespace {

TEST(Fields, KindsInAnyCaseAndSpelling) {
  struct Case {
    std::string_view name;
    FieldKind kind;
  };
  constexpr Case kCases[] = {
      {"Connection", FieldKind::kHopByHop},
      {"KEEP-ALIVE", FieldKind::kHopByHop},
      {"Keep_Alive", FieldKind::kHopByHop},
      {"Proxy", FieldKind::kHopByHop},
      {"Transfer-Encoding", FieldKind::kFraming},
      {"transfer_encoding", FieldKind::kFraming},
      {"Content-Length", FieldKind::kFraming},
      {"content_length", FieldKind::kFraming},
      {"TE", FieldKind::kTe},
      {"Trailer", FieldKind::kTrailer},
      {"Host", FieldKind::kHost},
      {"X-Forwarded-For", FieldKind::kXForwardedFor},
      {"X_Forwarded_For", FieldKind::kXForwardedFor},
      {"x-forwarded-prefix", FieldKind::kForwarded},
      {"X-Forwarded", FieldKind::kForwarded},
      {"X_Real_IP", FieldKind::kForwarded},
      {"Forwarded", FieldKind::kForwarded},
      {"X-Request-ID", FieldKind::kRequestId},
      {"Authorization", FieldKind::kEndToEnd},
      {"X-Forwar", FieldKind::kEndToEnd},
      {"Hosts", FieldKind::kEndToEnd},
      {"Tee", FieldKind::kEndToEnd},
      {"X", FieldKind::kEndToEnd},
      {"a-name-that-is-longer-than-thirty-two-characters", FieldKind::kEndToEnd},
  };
  for (const Case& c : kCases) EXPECT_EQ(KindOf(c.name), c.kind) << c.name;
}

TEST(Fields, NominatedByConnection) {
  const net::HttpField fields[] = {{"Connection", "close, X-One ,,\tx-two"},
                                   {"Other", "x-four"},
                                   {"connection", "keep-alive,X-Three"}};
  const Nominated nominated(fields);
  EXPECT_TRUE(nominated.Has("x-one"));
  EXPECT_TRUE(nominated.Has("X-TWO"));
  EXPECT_TRUE(nominated.Has("x-three"));
  EXPECT_FALSE(nominated.Has("x-four"));
  EXPECT_FALSE(nominated.Has("close"));
  EXPECT_FALSE(nominated.too_many());
}

TEST(Fields, TooManyNominated) {
  std::string list;
  for (int i = 0; i < 17; ++i) list += "x-" + std::to_string(i) + ",";
  const net::HttpField fields[] = {{"Connection", list}};
  EXPECT_TRUE(Nominated(fields).too_many());
}

TEST(Fields, Elements) {
  std::vector<std::string> seen;
  EachElement(" a,b ,, \t, c", [&](std::string_view element) {
    seen.emplace_back(element);
    return true;
  });
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c"}));
}

}  // namespace
}  // namespace tidegate
