// SPDX-License-Identifier: Apache-2.0
// Each variant of a path, a method or a target is first sent directly to real upstreams, which
// report what they would serve. Then the variant is sent through the gateway, and described to
// /v1/auth: no variant that an upstream serves as the protected resource may get through.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>

#include "gateway/variants/upstream_fleet.hpp"
#include "gateway/variants/variant_rows.hpp"

namespace tidegate::gateway_test {
namespace {

constexpr const char* kProtection = R"(deny: [{ path: /admin/** }]
rules:
  - { id: login, match: { path: /v1/login, method: POST }, per: client_ip, limit: 1/h }
)";

std::string RequestOf(const PathRow& row, const std::string& host, std::size_t index) {
  const std::string close =
      row.fields.find("Connection:") == std::string::npos ? "Connection: close\r\n" : std::string();
  return Replaced(row.Line(), "$HOST", host) + "Host: " + host + "\r\n" + close +
         "X-Row: " + std::to_string(index) + "\r\n" + row.fields + "Content-Length: 0\r\n\r\n";
}

std::string LoginTo(const std::string& host) {
  return "POST /v1/login HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 0\r\n\r\n";
}

/// The resource that each upstream serves for each row if the request comes directly.
class Direct {
 public:
  Direct(const UpstreamFleet& fleet, const std::vector<PathRow>& rows) : served_(rows.size()) {
    for (const Upstream& upstream : fleet.all()) {
      std::vector<Exchange> exchanges;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        exchanges.push_back({RequestOf(rows[i], upstream.Host(), i), "", rows[i].method == "HEAD"});
      }
      const std::vector<Seen> seen = RunAll(upstream.port, exchanges);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        for (const Reader& reader : upstream.readers) {
          const std::string served = ServedBy(reader, seen[i]);
          if (IsProtected(served)) served_[i][reader.name] = served;
        }
      }
    }
  }

  [[nodiscard]] bool Protected(std::size_t row) const { return !served_[row].empty(); }
  [[nodiscard]] std::size_t ProtectedRows() const {
    std::size_t count = 0;
    for (const auto& each : served_) count += each.empty() ? 0 : 1;
    return count;
  }
  /// Returns what each reader serves for the row, for failure messages.
  [[nodiscard]] std::string Text(std::size_t row) const {
    std::string text;
    for (const auto& [reader, served] : served_[row]) {
      text += Joined({text.empty() ? "" : "; ", reader, ": ", served});
    }
    return text;
  }

 private:
  std::vector<std::map<std::string, std::string>> served_;
};

struct PathCounts {
  std::size_t sent = 0, refused = 0, upstream_refused = 0, passed = 0, escaped = 0;
  std::map<std::string, std::size_t> escapes_by_group;
  std::map<int, std::size_t> statuses;  ///< Number of the gateway's own rejections by status.

  void Print(const char* title, std::size_t rows, std::size_t protected_rows) const {
    std::printf(
        "%s: %zu rows, %zu served as protected by an upstream without Tidegate; %zu sent: "
        "%zu refused by Tidegate (",
        title, rows, protected_rows, sent, refused);
    for (const auto& [status, count] : statuses) std::printf(" %d: %zu", status, count);
    std::printf(" ), %zu rejected by the upstream, %zu served as something else, %zu escaped",
                upstream_refused, passed, escaped);
    for (const auto& [group, count] : escapes_by_group) {
      std::printf("; %s: %zu", group.c_str(), count);
    }
    std::printf("\n");
  }
};

/// Uses up the limit of each row's client, so that a variant that counts as a login is denied.
void LogInOnce(const Upstream& upstream, int port, const std::vector<PathRow>& rows, int net,
               std::size_t run) {
  std::vector<Exchange> logins;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    logins.push_back({LoginTo(upstream.Host()), "", false, AddressOf(net, run, i)});
  }
  const std::vector<Seen> seen = RunAll(port, logins);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(StatusOf(seen[i]), 200) << "the first login of " << logins[i].from << " through "
                                      << upstream.name << ": " << seen[i].Text();
  }
}

/// Returns the request lines that the gateway forwards, by row.
std::map<std::size_t, std::string> ForwardedLines(UpstreamFleet& fleet, int port,
                                                  const std::vector<PathRow>& rows) {
  const Upstream raw{"raw", fleet.raw().port(), {}};
  LogInOnce(raw, port, rows, 127, 19);
  std::vector<Exchange> exchanges;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    exchanges.push_back(
        {RequestOf(rows[i], raw.Host(), i), "", rows[i].method == "HEAD", AddressOf(127, 19, i)});
  }
  (void)RunAll(port, exchanges);
  std::map<std::size_t, std::string> lines;
  for (const Message& request : fleet.raw().Requests()) {
    const std::string row = request.Field("x-row");
    if (!row.empty()) lines[std::stoul(row)] = request.method + " " + request.target;
  }
  return lines;
}

/// Sends all rows through the gateway to each upstream.
void CheckGateway(UpstreamFleet& fleet, FleetGateway& tidegate, const std::vector<PathRow>& rows,
                  const Direct& direct, const char* title) {
  const auto forwarded = ForwardedLines(fleet, tidegate.gateway_port(), rows);
  PathCounts counts;
  std::size_t run = 20;
  for (const Upstream& upstream : fleet.all()) {
    LogInOnce(upstream, tidegate.gateway_port(), rows, 127, ++run);
    if (testing::Test::HasFatalFailure()) return;
    std::vector<Exchange> exchanges;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      exchanges.push_back({RequestOf(rows[i], upstream.Host(), i), "", rows[i].method == "HEAD",
                           AddressOf(127, run, i)});
    }
    const std::vector<Seen> seen = RunAll(tidegate.gateway_port(), exchanges);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ++counts.sent;
      bool escaped = false;
      for (const Reader& reader : upstream.readers) {
        const std::string served = ServedBy(reader, seen[i]);
        if (!IsProtected(served)) continue;
        escaped = true;
        const auto line = forwarded.find(i);
        ADD_FAILURE() << "escape: " << reader.name << " serves " << served << " for "
                      << Printable(RequestOf(rows[i], upstream.Host(), i)) << "\n  forwarded as "
                      << (line == forwarded.end() ? "?" : Printable(line->second));
      }
      if (escaped) {
        ++counts.escaped;
        ++counts.escapes_by_group[rows[i].group];
      } else if (!Reached(upstream, seen[i])) {
        // Upstreams reject requests too, some without reporting what they served.
        const int status = StatusOf(seen[i]);
        const bool own = status == 0 || seen[i].answers.front().Field("content-type") ==
                                            "application/problem+json";
        ++(own ? counts.refused : counts.upstream_refused);
        if (own) ++counts.statuses[status];
      } else {
        ++counts.passed;
      }
      EXPECT_NE(seen[i].end, Seen::End::kSilent)
          << "no response to " << Printable(exchanges[i].send);
      EXPECT_FALSE(Failed(seen[i])) << upstream.name << ": " << Printable(exchanges[i].send);
    }
  }
  EXPECT_TRUE(tidegate.process().alive()) << tidegate.process().Output();
  counts.Print(title, rows.size(), direct.ProtectedRows());
}

/// Fields with which proxies describe a request to /v1/auth.
enum class Form : std::uint8_t { kForwardedUri, kOriginalUri };

std::string Question(Form form, const std::string& method, const std::string& target,
                     const std::string& host, const std::string& client) {
  const std::string described =
      form == Form::kForwardedUri
          ? "X-Forwarded-Uri: " + target + "\r\nX-Forwarded-Method: " + method +
                "\r\nX-Forwarded-Host: " + host + "\r\nX-Forwarded-Proto: http\r\n"
          : "X-Original-URI: " + target + "\r\nX-Original-Method: " + method + "\r\n";
  return "GET /v1/auth HTTP/1.1\r\nHost: " + host + "\r\nX-Forwarded-For: " + client + "\r\n" +
         described + "\r\n";
}

/// Describes all rows to /v1/auth, as nginx and Traefik would.
void CheckAuth(FleetGateway& tidegate, const std::vector<PathRow>& rows, const Direct& direct,
               const char* title) {
  PathCounts counts;
  for (const Form form : {Form::kForwardedUri, Form::kOriginalUri}) {
    std::vector<Exchange> logins;
    std::vector<Exchange> questions;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string host = "app.test";
      const std::string client = AddressOf(10, form == Form::kForwardedUri ? 1 : 2, i);
      logins.push_back({Question(form, "POST", "/v1/login", host, client), ""});
      questions.push_back(
          {Question(form, rows[i].method, Replaced(rows[i].target, "$HOST", host), host, client),
           ""});
    }
    for (const Seen& seen : RunAll(tidegate.api_port(), logins)) {
      ASSERT_EQ(StatusOf(seen), 200) << seen.Text();
    }
    const std::vector<Seen> seen = RunAll(tidegate.api_port(), questions);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].Describable()) continue;
      ++counts.sent;
      const int status = StatusOf(seen[i]);
      EXPECT_FALSE(Failed(seen[i])) << Printable(questions[i].send);
      if (status != 200) {
        ++counts.refused;
        ++counts.statuses[status];
      } else if (direct.Protected(i)) {
        ++counts.escaped;
        ++counts.escapes_by_group[rows[i].group];
        ADD_FAILURE() << "escape: 200 for " << Printable(rows[i].method + " " + rows[i].target)
                      << (form == Form::kForwardedUri ? " in X-Forwarded-Uri"
                                                      : " in X-Original-URI")
                      << "\n  " << direct.Text(i);
      } else {
        ++counts.passed;
      }
    }
  }
  counts.Print(title, rows.size(), direct.ProtectedRows());
}

/// Expects that each group has rows that an upstream serves as the protected resource: otherwise
/// the group would test nothing.
void ExpectEachGroupTried(const std::vector<PathRow>& rows, const Direct& direct) {
  std::set<std::string> groups, tried;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    groups.insert(rows[i].group);
    if (direct.Protected(i)) tried.insert(rows[i].group);
  }
  EXPECT_EQ(tried, groups);
}

TEST(PathVariantsTest, NoVariantReachesProtectedPathThroughTheGateway) {
  UpstreamFleet fleet;
  const std::vector<PathRow> rows = PathRows();
  const Direct direct(fleet, rows);
  ExpectEachGroupTried(rows, direct);
  FleetGateway tidegate(fleet, kProtection);
  CheckGateway(fleet, tidegate, rows, direct, "paths, gateway");
}

TEST(PathVariantsTest, ForwardAuthDeniesVariantsServedAsProtectedPath) {
  UpstreamFleet fleet;
  const std::vector<PathRow> rows = PathRows();
  const Direct direct(fleet, rows);
  FleetGateway tidegate(fleet, kProtection);
  CheckAuth(tidegate, rows, direct, "paths, /v1/auth");
}

TEST(PathVariantsTest, NoVariantEscapesWithEncodedSlashesAllowedGlobally) {
  UpstreamFleet fleet;
  const std::vector<PathRow> rows = PathRows();
  const Direct direct(fleet, rows);
  FleetGateway tidegate(fleet, std::string(kProtection) + "paths: { encoded_slashes: match }\n");
  CheckGateway(fleet, tidegate, rows, direct, "paths, encoded slashes match, gateway");
  CheckAuth(tidegate, rows, direct, "paths, encoded slashes match, /v1/auth");
}

TEST(PathVariantsTest, NoVariantEscapesWithEncodedSlashesAllowedOnRoutes) {
  UpstreamFleet fleet;
  const std::vector<PathRow> rows = PathRows();
  const Direct direct(fleet, rows);
  FleetGateway tidegate(fleet, kProtection, ", encoded_slashes: match");
  CheckGateway(fleet, tidegate, rows, direct, "paths, encoded slashes match on routes, gateway");
}

TEST(LetterCaseVariantsTest, NoVariantReachesProtectedPathWhenCaseIsIgnored) {
  UpstreamFleet fleet;
  const std::vector<PathRow> rows = CaseRows();
  const Direct direct(fleet, rows);
  ExpectEachGroupTried(rows, direct);
  FleetGateway tidegate(fleet, std::string(kProtection) + "paths: { ignore_case: true }\n");
  CheckGateway(fleet, tidegate, rows, direct, "case, gateway");
  CheckAuth(tidegate, rows, direct, "case, /v1/auth");
}

TEST(HeaderVariantsTest, NoHeaderReplacesThePathThatUpstreamServes) {
  UpstreamFleet fleet;
  const std::vector<PathRow> rows = HeaderRows();
  const Direct direct(fleet, rows);
  ExpectEachGroupTried(rows, direct);
  FleetGateway tidegate(fleet, kProtection);
  CheckGateway(fleet, tidegate, rows, direct, "headers, gateway");
}

// The test only prints these requests and does not judge them. Operators whose upstream honours
// such fields must write rules that do not depend on the method, or remove the fields with
// `request_headers`.
TEST(HeaderVariantsTest, PrintsMethodOverridesThatReachTheUpstream) {
  UpstreamFleet fleet;
  const std::vector<PathRow> rows = MethodOverrideRows();
  FleetGateway tidegate(fleet, kProtection);
  const Upstream& express = fleet.Named("express");
  std::vector<Exchange> exchanges;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    exchanges.push_back({RequestOf(rows[i], express.Host(), i), "", false, AddressOf(127, 18, i)});
  }
  std::size_t reached = 0;
  for (const Seen& seen : RunAll(tidegate.gateway_port(), exchanges)) {
    reached += Reached(express, seen) ? 1 : 0;
  }
  std::printf("method overrides: %zu rows, %zu reach the upstream\n", rows.size(), reached);
}

}  // namespace
}  // namespace tidegate::gateway_test
