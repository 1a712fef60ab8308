// SPDX-License-Identifier: Apache-2.0
// The limit of a key is used up, and then the key is sent in other forms: a form that the upstream
// reads as the same key must not get a fresh limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "gateway/variants/upstream_fleet.hpp"
#include "gateway/variants/variant_rows.hpp"

namespace tidegate::gateway_test {
namespace {

using Kind = IdentityRow::Kind;

constexpr const char* kRules = R"(rules:
  - { id: header, match: { path: /keyed/header }, per: "header:x-api-key", limit: 1/h }
  - { id: cookie, match: { path: /keyed/cookie }, per: "cookie:sid", limit: 1/h }
  - { id: query, match: { path: /keyed/query }, per: "query:api_key", limit: 1/h }
  - { id: bearer, match: { path: /keyed/bearer }, per: "header:authorization", limit: 1/h }
  - { id: address, match: { path: /keyed/address }, per: client_ip, limit: 1/h }
)";

std::string PathOf(Kind kind) {
  switch (kind) {
    case Kind::kHeader: return "/keyed/header";
    case Kind::kCookie: return "/keyed/cookie";
    case Kind::kQuery: return "/keyed/query";
    case Kind::kAuthorization:
    case Kind::kBasic: break;
  }
  return "/keyed/bearer";
}

/// Returns the names (or their beginnings) of the response fields in which upstreams report the key
/// that they have read.
std::string EchoOf(Kind kind) {
  switch (kind) {
    case Kind::kHeader: return "x-key-header x-key-header-first x-key-header-last x-key-trailer";
    case Kind::kCookie: return "x-key-cookie x-key-cookie-first x-key-cookie-last";
    case Kind::kQuery: return "x-key-query-first x-key-query-last";
    case Kind::kAuthorization: return "x-key-authorization";
    case Kind::kBasic: break;
  }
  return "x-key-authorization-basic";
}

/// A row with all placeholders replaced.
struct Filled {
  std::string fields, query, body;
};

Filled Fill(const IdentityRow& row, const std::string& key) {
  const auto number = [&](const char* format) {
    char text[8];
    std::snprintf(text, sizeof text, format, static_cast<unsigned>(key.front()));
    return std::string(text);
  };
  const bool basic = row.kind == Kind::kBasic;
  const auto fill = [&](std::string text) {
    text = Replaced(text, "$KEY", key);
    text = Replaced(text, "$K1", number("%02x"));
    text = Replaced(text, "$K8", number("%03o"));
    text = Replaced(text, "$REST", key.substr(1));
    text = Replaced(text, "$SCHEME", basic ? "Basic" : "Bearer");
    text = Replaced(text, "$scheme", basic ? "basic" : "bearer");
    return Replaced(text, "$SCHEMA", basic ? "BASIC" : "BEARER");
  };
  return {fill(row.fields), fill(row.query), fill(row.body)};
}

/// Returns the usual form of a key of this kind.
Filled UsualForm(Kind kind, const std::string& key) {
  switch (kind) {
    case Kind::kHeader: return {"X-Api-Key: " + key + "\r\n", "", ""};
    case Kind::kCookie: return {"Cookie: sid=" + key + "\r\n", "", ""};
    case Kind::kQuery: return {"", "api_key=" + key, ""};
    case Kind::kAuthorization: return {"Authorization: Bearer " + key + "\r\n", "", ""};
    case Kind::kBasic: break;
  }
  return {"Authorization: Basic " + key + "\r\n", "", ""};
}

std::string RequestOf(Kind kind, const Filled& filled, const std::string& host) {
  return "POST " + PathOf(kind) + (filled.query.empty() ? "" : "?" + filled.query) +
         " HTTP/1.1\r\nHost: " + host + "\r\n" + filled.fields +
         (filled.body.empty() ? "Content-Length: 0\r\n" : "") + "\r\n" + filled.body;
}

/// Returns the name of a reading of the upstream that sees `key`, for failure messages; empty if
/// none does.
std::string ReaderOf(Kind kind, const std::string& key, const Seen& seen) {
  if (StatusOf(seen) != 200) return {};
  const std::string echoes = " " + EchoOf(kind) + " ";
  for (const auto& [name, value] : seen.answers.front().fields) {
    if (value == key && echoes.find(" " + name + " ") != std::string::npos) return name;
  }
  return {};
}

std::string KeyOf(std::size_t run, std::size_t row) {
  return "k" + std::to_string(run) + "q" + std::to_string(1000 + row);
}

struct IdentityCounts {
  std::size_t same = 0, refused = 0, changed = 0, escaped = 0;
};

TEST(IdentityVariantsTest, GatewayCountsVariantsOfKeyAsTheSameKey) {
  UpstreamFleet fleet;
  FleetGateway tidegate(fleet, kRules);
  const std::vector<IdentityRow> rows = IdentityRows();
  IdentityCounts counts;
  std::size_t run = 0;
  for (const std::string name : {"express", "python"}) {
    const Upstream& upstream = fleet.Named(name);
    ++run;
    std::vector<Exchange> usual, variants;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string key = KeyOf(run, i);
      usual.push_back({RequestOf(rows[i].kind, UsualForm(rows[i].kind, key), upstream.Host()), "",
                       false, AddressOf(127, 30 + run, i)});
      // This variant is sent from another address, which has not been counted before.
      variants.push_back({RequestOf(rows[i].kind, Fill(rows[i], key), upstream.Host()), "", false,
                          AddressOf(127, 40 + run, i)});
    }
    const std::vector<Seen> direct = RunAll(upstream.port, variants);
    const std::vector<Seen> first = RunAll(tidegate.gateway_port(), usual);
    const std::vector<Seen> again = RunAll(tidegate.gateway_port(), usual);
    const std::vector<Seen> seen = RunAll(tidegate.gateway_port(), variants);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string key = KeyOf(run, i);
      ASSERT_NE(ReaderOf(rows[i].kind, key, first[i]), "") << usual[i].send << first[i].Text();
      ASSERT_EQ(StatusOf(again[i]), 429) << usual[i].send;
      counts.same += ReaderOf(rows[i].kind, key, direct[i]).empty() ? 0 : 1;
      const std::string reader = ReaderOf(rows[i].kind, key, seen[i]);
      if (!reader.empty()) {
        ++counts.escaped;
        ADD_FAILURE() << "escape: " << upstream.name << " reads the same key (" << reader
                      << ") in: " << rows[i].name << "\n  " << Printable(variants[i].send);
      } else {
        ++(StatusOf(seen[i]) == 200 ? counts.changed : counts.refused);
      }
      EXPECT_FALSE(Failed(seen[i])) << Printable(variants[i].send);
      EXPECT_NE(seen[i].end, Seen::End::kSilent) << Printable(variants[i].send);
    }
  }
  std::printf(
      "identities, gateway: %zu rows to 2 upstreams, %zu read as the same key without Tidegate; "
      "%zu refused, %zu passed as another key or none, %zu escaped\n",
      rows.size(), counts.same, counts.refused, counts.changed, counts.escaped);
}

TEST(IdentityVariantsTest, ForwardAuthCountsVariantsOfKeyAsTheSameKey) {
  UpstreamFleet fleet;
  FleetGateway tidegate(fleet, kRules);
  std::vector<IdentityRow> rows = IdentityRows();
  std::erase_if(
      rows, [](const IdentityRow& row) { return row.auth == IdentityRow::Auth::kNotForwarded; });
  const auto question = [](Kind kind, const Filled& filled, const std::string& client) {
    return "GET /v1/auth HTTP/1.1\r\nHost: app.test\r\nX-Forwarded-For: " + client +
           "\r\nX-Forwarded-Method: POST\r\nX-Forwarded-Uri: " + PathOf(kind) +
           (filled.query.empty() ? "" : "?" + filled.query) + "\r\n" + filled.fields + "\r\n";
  };
  std::vector<Exchange> usual, variants;
  std::vector<std::string> readers(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string key = KeyOf(9, i);
    usual.push_back(
        {question(rows[i].kind, UsualForm(rows[i].kind, key), AddressOf(10, 3, i)), ""});
    variants.push_back({question(rows[i].kind, Fill(rows[i], key), AddressOf(10, 4, i)), ""});
  }
  for (const std::string name : {"express", "python"}) {
    const Upstream& upstream = fleet.Named(name);
    std::vector<Exchange> direct;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      direct.push_back({RequestOf(rows[i].kind, Fill(rows[i], KeyOf(9, i)), upstream.Host()), ""});
    }
    const std::vector<Seen> seen = RunAll(upstream.port, direct);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string reader = ReaderOf(rows[i].kind, KeyOf(9, i), seen[i]);
      if (!reader.empty()) readers[i] += Joined({name, " (", reader, ") "});
    }
  }
  const std::vector<Seen> first = RunAll(tidegate.api_port(), usual);
  const std::vector<Seen> seen = RunAll(tidegate.api_port(), variants);
  IdentityCounts counts;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(StatusOf(first[i]), 200) << usual[i].send << first[i].Text();
    counts.same += readers[i].empty() ? 0 : 1;
    if (StatusOf(seen[i]) != 200) {
      ++counts.refused;
    } else if (readers[i].empty()) {
      ++counts.changed;
    } else {
      ++counts.escaped;
      ADD_FAILURE() << "escape: 200, and " << readers[i]
                    << "reads the same key in: " << rows[i].name << "\n  "
                    << Printable(variants[i].send);
    }
    EXPECT_FALSE(Failed(seen[i])) << Printable(variants[i].send);
  }
  std::printf(
      "identities, /v1/auth: %zu rows, %zu read as the same key by an upstream; %zu refused, "
      "%zu passed that no upstream reads so, %zu escaped\n",
      rows.size(), counts.same, counts.refused, counts.changed, counts.escaped);
}

// The client's limit is used up in the usual form of the field. Another form of the field from the
// same trusted proxy must count for the same client.
TEST(IdentityVariantsTest, CountsAllFormsOfXForwardedForAsTheSameClient) {
  UpstreamFleet fleet;
  FleetGateway tidegate(fleet, kRules);
  const std::vector<ForwardedRow> rows = ForwardedRows();
  const auto through_gateway = [](const std::string& fields) {
    return "GET /keyed/address HTTP/1.1\r\nHost: express.test\r\n" + fields + "\r\n";
  };
  const auto at_auth = [](const std::string& fields) {
    return "GET /v1/auth HTTP/1.1\r\nHost: app.test\r\nX-Forwarded-Method: GET\r\n"
           "X-Forwarded-Uri: /keyed/address\r\n" +
           fields + "\r\n";
  };
  std::size_t refused = 0, escaped = 0;
  for (const bool auth : {false, true}) {
    std::vector<Exchange> usual, proxies, variants;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto request = [&](const std::string& fields) {
        return auth ? at_auth(fields) : through_gateway(fields);
      };
      const std::string client = AddressOf(203, auth ? 1 : 2, i);
      const std::string proxy = AddressOf(127, 77, i + (auth ? 250 : 0));
      usual.push_back({request("X-Forwarded-For: " + client + "\r\n"), "", false, proxy});
      if (rows[i].fallback == ForwardedRow::Fallback::kProxy) {
        proxies.push_back({request(""), "", false, proxy});
      }
      variants.push_back({request(Replaced(rows[i].fields, "$IP", client)), "", false, proxy});
    }
    const int port = auth ? tidegate.api_port() : tidegate.gateway_port();
    for (const Seen& seen : RunAll(port, usual)) ASSERT_EQ(StatusOf(seen), 200) << seen.Text();
    for (const Seen& seen : RunAll(port, proxies)) ASSERT_EQ(StatusOf(seen), 200) << seen.Text();
    const std::vector<Seen> seen = RunAll(port, variants);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool passed = StatusOf(seen[i]) == 200;
      ++(passed ? escaped : refused);
      EXPECT_FALSE(passed) << (auth ? "/v1/auth" : "gateway")
                           << ", a fresh or shared limit for: " << rows[i].name << "\n  "
                           << Printable(variants[i].send);
      EXPECT_FALSE(Failed(seen[i])) << Printable(variants[i].send);
    }
  }
  std::printf("X-Forwarded-For: %zu rows, at the gateway and /v1/auth: %zu rejected, %zu escaped\n",
              rows.size(), refused, escaped);
}

}  // namespace
}  // namespace tidegate::gateway_test
