// SPDX-License-Identifier: Apache-2.0
// Sends requests that real clients sent, byte for byte, through nginx and through Tidegate:
// Tidegate must forward what nginx forwards, with the same method, an equivalent target and the
// same body.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "gateway/case_runner.hpp"
#include "gateway/raw_upstream.hpp"
#include "gateway/traffic/request_fixture.hpp"
#include "gateway/traffic/traffic_rig.hpp"

namespace tidegate::gateway_test {
namespace {

/// Decodes every percent-encoding in `text`, except that encoded delimiters stay different from
/// plain ones.
std::string Decoded(std::string_view text, std::string_view delimiters) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_hex = [&](std::size_t at) {
      return at < text.size() && std::isxdigit(static_cast<unsigned char>(text[at])) != 0;
    };
    if (text[i] != '%' || !is_hex(i + 1) || !is_hex(i + 2)) {
      decoded += text[i];
      continue;
    }
    const char c = static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
    if (delimiters.find(c) != std::string_view::npos) decoded += '\0';
    decoded += c;
    i += 2;
  }
  return decoded;
}

/// Returns a normal form that is equal for equivalent targets: percent-encoding, dot segments and
/// repeated slashes do not matter in a path, as docs/gateway.md describes; in a query only
/// percent-encoding does not matter.
std::string Meaning(const std::string& target) {
  std::string_view rest = target;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(std::min(rest.find('/', 7), rest.size()));
  }
  const std::size_t question = rest.find('?');
  const std::string path = Decoded(rest.substr(0, question), "/%");
  std::string meaning;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const bool encoded = end > 0 && end < path.size() && path[end - 1] == '\0';
    const std::string segment = path.substr(begin, end - begin);
    if (segment == "..") {
      meaning.erase(std::min(meaning.rfind('/'), meaning.size()));
    } else if (!segment.empty() && segment != ".") {
      meaning += (meaning.ends_with('\0') ? "" : "/") + segment;
      if (encoded) meaning += '/';
    }
    begin = end + 1;
  }
  if (path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..")) meaning += '/';
  if (question == std::string_view::npos) return meaning;
  return meaning + "?" + Decoded(rest.substr(question + 1), "&=%+");
}

/// Responses that the client received, and requests that the proxy forwarded.
struct Outcome {
  Seen seen;
  std::vector<Message> forwarded;

  [[nodiscard]] bool Passed() const {
    return seen.end == Seen::End::kAnswered && !seen.answers.empty() &&
           seen.answers.back().status == 200 && !forwarded.empty();
  }
  [[nodiscard]] std::string Text() const {
    std::string text = seen.Text();
    for (const Message& one : forwarded) {
      text += "; forwarded " + one.method + " " + Printable(one.target).substr(0, 200) + " with " +
              std::to_string(one.body.size()) + " bytes";
    }
    if (!seen.answers.empty()) text += "; " + seen.answers.back().body.substr(0, 300);
    return text;
  }
};

/// One proxy and its own upstream.
class Path {
 public:
  explicit Path(std::unique_ptr<ProxyProcess> (*start)(int port))
      : proxy_(start(upstream_.port())) {}
  explicit Path(const TidegateOptions& options)
      : proxy_(TidegateWithRules(upstream_.port(), options)) {}

  Outcome Send(const CapturedRequest& request) {
    upstream_.Reset();
    Outcome outcome;
    outcome.seen =
        RunOne(proxy_->port(), {request.bytes, request.until, request.bytes.starts_with("HEAD ")});
    for (Message& one : upstream_.Requests()) {
      if (one.target != "/ready") outcome.forwarded.push_back(std::move(one));
    }
    return outcome;
  }
  [[nodiscard]] ProxyProcess& proxy() { return *proxy_; }

 private:
  RawUpstream upstream_;
  std::unique_ptr<ProxyProcess> proxy_;
};

void ExpectSame(const CapturedRequest& request, const Outcome& nginx, const Outcome& tidegate) {
  ASSERT_EQ(tidegate.forwarded.size(), nginx.forwarded.size()) << request.title;
  for (std::size_t i = 0; i < nginx.forwarded.size(); ++i) {
    EXPECT_EQ(tidegate.forwarded[i].method, nginx.forwarded[i].method) << request.title;
    EXPECT_EQ(Meaning(tidegate.forwarded[i].target), Meaning(nginx.forwarded[i].target))
        << request.title << "\n  nginx forwarded    " << Printable(nginx.forwarded[i].target)
        << "\n  Tidegate forwarded " << Printable(tidegate.forwarded[i].target);
    EXPECT_TRUE(tidegate.forwarded[i].body == nginx.forwarded[i].body)
        << request.title << ": the bodies differ: " << Printable(nginx.forwarded[i].body) << " and "
        << Printable(tidegate.forwarded[i].body);
  }
}

struct TrafficCounts {
  std::size_t rows = 0, nginx_refused = 0, ambiguous = 0, passed = 0, refused = 0;
};

/// Sends the records that need `option` (empty: the records that need no option) through nginx and
/// through Tidegate.
void Replay(const std::string& option, Path& tidegate, const char* title) {
  Path nginx(&RequiredNginx);
  TrafficCounts counts;
  for (const CapturedRequest& request : ReadRequests(TIDEGATE_TRAFFIC "/requests.txt")) {
    if (request.needs != option) continue;
    ++counts.rows;
    const Outcome through_nginx = nginx.Send(request);
    const Outcome through_tidegate = tidegate.Send(request);
    const bool passed = through_tidegate.Passed();
    ++(passed ? counts.passed : counts.refused);
    if (!through_nginx.Passed()) {
      ++counts.nginx_refused;
      std::printf("rejected by nginx: %s\n", request.title.c_str());
      if (!passed) continue;
    }
    if (!passed && !request.ambiguous.empty()) {
      ++counts.ambiguous;
      continue;
    }
    EXPECT_TRUE(passed)
        << "refused: " << request.title << "\n  "
        << Printable(request.bytes.substr(0, request.bytes.find('\n'))).substr(0, 300) << "\n  "
        << through_tidegate.Text();
    if (passed && through_nginx.Passed()) ExpectSame(request, through_nginx, through_tidegate);
  }
  EXPECT_TRUE(tidegate.proxy().alive()) << tidegate.proxy().Output();
  std::printf(
      "%s: %zu rows, %zu refused by nginx; Tidegate passes %zu and refuses %zu, of which %zu "
      "are ambiguous\n",
      title, counts.rows, counts.nginx_refused, counts.passed, counts.refused, counts.ambiguous);
  EXPECT_GT(counts.rows, 0U);
}

TEST(RequestTrafficTest, ForwardsRequestsThatNginxForwards) {
  Path tidegate(TidegateOptions{});
  Replay("", tidegate, "requests");
}

TEST(RequestTrafficTest, ForwardsLongTargetsWithRaisedTargetBytes) {
  // nginx accepts only 8 KiB by default, so a rejection by nginx does not excuse Tidegate here.
  Path tidegate({.sections = "limits: { target_bytes: 64KiB, header_bytes: 80KiB }\n"});
  for (const CapturedRequest& request : ReadRequests(TIDEGATE_TRAFFIC "/requests.txt")) {
    if (request.needs != "target_bytes") continue;
    const Outcome outcome = tidegate.Send(request);
    EXPECT_TRUE(outcome.Passed()) << request.title << ": " << outcome.Text();
    ASSERT_EQ(outcome.forwarded.size(), 1U);
    EXPECT_NE(request.bytes.find(outcome.forwarded[0].target), std::string::npos);
  }
}

TEST(RequestTrafficTest, ForwardsUnknownExpectationsIfConfigured) {
  Path tidegate({.sections = "gateway: { unknown_expect: ignore }\n"});
  Replay("unknown_expect", tidegate, "requests, unknown Expect");
}

/// Expects that Tidegate forwards the records that are ambiguous only because of encoded slashes.
void ExpectEncodedSlashesForwarded(Path& tidegate) {
  Path nginx(&RequiredNginx);
  std::size_t rows = 0;
  for (CapturedRequest& request : ReadRequests(TIDEGATE_TRAFFIC "/requests.txt")) {
    if (!request.ambiguous.starts_with("an encoded slash")) continue;
    ++rows;
    const Outcome through_nginx = nginx.Send(request);
    const Outcome through_tidegate = tidegate.Send(request);
    EXPECT_TRUE(through_tidegate.Passed()) << request.title << ": " << through_tidegate.Text();
    ExpectSame(request, through_nginx, through_tidegate);
  }
  EXPECT_GT(rows, 0U);
  std::printf("requests with encoded slashes: %zu rows\n", rows);
}

TEST(RequestTrafficTest, ForwardsEncodedSlashesIfAllowedGlobally) {
  Path tidegate({.sections = "paths: { encoded_slashes: match }\n"});
  ExpectEncodedSlashesForwarded(tidegate);
}

TEST(RequestTrafficTest, ForwardsEncodedSlashesIfTheRouteAllowsThem) {
  Path tidegate({.route = ", encoded_slashes: match"});
  ExpectEncodedSlashesForwarded(tidegate);
}

TEST(RequestTrafficTest, RejectsEncodedSlashesByDefault) {
  Path tidegate(TidegateOptions{});
  for (const CapturedRequest& request : ReadRequests(TIDEGATE_TRAFFIC "/requests.txt")) {
    if (!request.ambiguous.starts_with("an encoded slash")) continue;
    const Outcome outcome = tidegate.Send(request);
    EXPECT_TRUE(outcome.forwarded.empty()) << request.title << ": " << outcome.Text();
    ASSERT_FALSE(outcome.seen.answers.empty()) << request.title << ": " << outcome.Text();
    EXPECT_EQ(outcome.seen.answers[0].status, 400) << request.title;
  }
}

TEST(RequestTrafficTest, ComparesOnlyEquivalentTargetsAsEqual) {
  EXPECT_EQ(Meaning("/a/./b/../c?x=%41"), Meaning("/a//c?x=A"));
  EXPECT_EQ(Meaning("/caf\xC3\xA9"), Meaning("/caf%C3%a9"));
  EXPECT_EQ(Meaning("/a%7cb"), Meaning("/a|b"));
  EXPECT_EQ(Meaning("/a%2Fb/c"), Meaning("/a%2fb//c"));
  EXPECT_NE(Meaning("/a%2Fb"), Meaning("/a/b"));
  EXPECT_NE(Meaning("/a/"), Meaning("/a"));
  EXPECT_NE(Meaning("/a?"), Meaning("/a"));
  EXPECT_NE(Meaning("/a?b=c%26d"), Meaning("/a?b=c&d"));
  EXPECT_NE(Meaning("/a?b%3dc"), Meaning("/a?b=c"));
  EXPECT_NE(Meaning("/a?b=%2b"), Meaning("/a?b=+"));
  EXPECT_NE(Meaning("/a?b=//c"), Meaning("/a?b=/c"));
  EXPECT_NE(Meaning("/a%2541"), Meaning("/a%41"));
}

}  // namespace
}  // namespace tidegate::gateway_test
