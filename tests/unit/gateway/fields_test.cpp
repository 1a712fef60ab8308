// SPDX-License-Identifier: Apache-2.0
#include "gateway/fields.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiled_rules.hpp"

namespace tidegate {
namespace {

TEST(HeaderFieldClassifierTest, RecognizesFieldKindsInAnyCaseAndSpelling) {
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
      {"X-Original-URL", FieldKind::kForwarded},
      {"x_rewrite_url", FieldKind::kForwarded},
      {"Upgrade", FieldKind::kUpgrade},
      {"Authorization", FieldKind::kEndToEnd},
      {"X-Forwar", FieldKind::kEndToEnd},
      {"Hosts", FieldKind::kEndToEnd},
      {"Tee", FieldKind::kEndToEnd},
      {"X", FieldKind::kEndToEnd},
      {"a-name-that-is-longer-than-thirty-two-characters", FieldKind::kEndToEnd},
  };
  for (const Case& c : kCases) EXPECT_EQ(KindOf(c.name), c.kind) << c.name;
}

TEST(HeaderFieldClassifierTest, FindsFieldsNamedInConnectionHeader) {
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

TEST(HeaderFieldClassifierTest, ReportsTooManyFieldsNamedInConnectionHeader) {
  std::string list;
  for (int i = 0; i < 17; ++i) list += "x-" + std::to_string(i) + ",";
  const net::HttpField fields[] = {{"Connection", list}};
  EXPECT_TRUE(Nominated(fields).too_many());
}

/// Returns the names of those fields of a request that rules can see.
std::vector<std::string> Visible(std::string fields, bool trusted, bool underscores = false) {
  const auto rules = CompiledRules("rules: [{id: a, limit: 1/s, per: 'header:x-key'}]\n");
  const std::string request = "GET http://a/ HTTP/1.1\r\n" + std::move(fields) + "\r\n";
  net::HeadParser parser;
  net::HttpHead head;
  EXPECT_EQ(parser.Parse(request, {}, head), net::Parsed::kDone) << parser.refusal().reason;
  RequestFields kinds;
  EXPECT_TRUE(
      kinds.Classify(head, {.trusted = trusted, .underscores = underscores, .rules = *rules}));
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < head.field_count; ++i) {
    if (kinds.VisibleToRules(i, head)) seen.emplace_back(head.fields[i].name);
  }
  return seen;
}

TEST(VisibleRequestFieldsTest, RulesSeeOnlyFieldsThatTheUpstreamSees) {
  using Names = std::vector<std::string>;
  const std::string fields =
      "Host: b\r\nX-Key: 1\r\nX_Key: 2\r\nX-Hop: 3\r\nConnection: x-hop, x-key\r\n"
      "X-Forwarded-For: 1.1.1.1\r\nX-Real-IP: 1.1.1.1\r\nX_Forwarded_For: 2.2.2.2\r\n"
      "TE: trailers\r\nExpect: 100-continue\r\nUpgrade: h2c\r\nX-Request-Id: a\r\n";
  EXPECT_EQ(Visible(fields, false), (Names{"X-Key"}))
      << "rules see a Host that differs from the host of the target";
  EXPECT_EQ(Visible(fields, true),
            (Names{"X-Key", "X-Forwarded-For", "X-Real-IP", "X-Request-Id"}));
  EXPECT_EQ(Visible("Host: a\r\nX_Key: 2\r\nX_Other: 3\r\n", false, true),
            (Names{"Host", "X_Other"}))
      << "rules see X_Key, which an upstream may read as X-Key";
  EXPECT_EQ(Visible("Host: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n", false),
            (Names{"Host", "Upgrade"}));
}

TEST(VisibleRequestFieldsTest, DropsTrailersThatRulesRead) {
  const auto rules = CompiledRules(
      "rules: [{id: a, limit: 1/s, per: 'header:x-key | cookie:sid'},"
      " {id: b, limit: 1/s, per: client_ip, match: {header: {x-plan: pro}}}]\n");
  const net::HttpField trailers[] = {{"X-Sum", "1"},    {"X-Key", "2"}, {"x_key", "3"},
                                     {"X-Plan", "4"},   {"X_Sum", "5"}, {"X-Original-URL", "/6"},
                                     {"X-Real-IP", "7"}};
  const auto written = [&](bool underscores) {
    net::OutBuffer out;
    const RequestFields::Policy policy{
        .trusted = true, .underscores = underscores, .rules = *rules};
    WriteTrailers(out, trailers, {}, &policy);
    return std::string(out.view());
  };
  EXPECT_EQ(written(false), "X-Sum: 1\r\n");
  EXPECT_EQ(written(true), "X-Sum: 1\r\nX_Sum: 5\r\n");
}

TEST(HeaderFieldClassifierTest, SplitsListsIntoElements) {
  std::vector<std::string> seen;
  net::http1::EachElement(" a,b ,, \t, c", [&](std::string_view element) {
    seen.emplace_back(element);
    return true;
  });
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c"}));
}

}  // namespace
}  // namespace tidegate
