// SPDX-License-Identifier: Apache-2.0
// Sends the same bytes to nginx, HAProxy and Tidegate, each in front of an upstream that records
// what it receives. Tidegate must forward what the table declares, must never forward bytes that
// two readers could take for different requests, and must forward nothing that the stricter of the
// other two does not forward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "gateway/case_runner.hpp"
#include "gateway/framing_case.hpp"
#include "gateway/proxy_process.hpp"
#include "gateway/raw_upstream.hpp"

namespace tidegate::gateway_test {
namespace {

/// Returns the label of a target, such as `case-1234`, wherever in the target it is; empty if there
/// is none.
std::string LabelOf(const std::string& target) {
  for (const std::string kind : {"case-", "marker-", "smuggled-"}) {
    const std::size_t at = target.find("/" + kind);
    if (at != std::string::npos) return target.substr(at + 1, kind.size() + 4);
  }
  return {};
}

/// Result of one case with one proxy: the responses that the client received, and the requests that
/// the proxy forwarded.
struct Outcome {
  Seen seen;
  std::vector<Message> forwarded;

  /// Returns the labels and the bodies of the forwarded requests.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> Extent() const {
    std::vector<std::pair<std::string, std::string>> extent;
    for (const Message& one : forwarded) extent.emplace_back(LabelOf(one.target), one.body);
    return extent;
  }
  [[nodiscard]] bool Refused() const { return forwarded.empty() && seen.end != Seen::End::kSilent; }
  [[nodiscard]] std::size_t Bytes() const {
    std::size_t bytes = 0;
    for (const Message& one : forwarded) bytes += one.body.size();
    return bytes;
  }
  [[nodiscard]] std::string Text() const {
    std::string text = "forwarded";
    for (const auto& [label, body] : Extent()) text += " " + label + "(" + Printable(body) + ")";
    return text + ", " + seen.Text();
  }
};

/// A proxy with its own upstream. `proxy` is nullptr if the program is not installed.
struct Rig {
  std::unique_ptr<RawUpstream> upstream = std::make_unique<RawUpstream>();
  std::unique_ptr<ProxyProcess> proxy;
  std::vector<Outcome> outcomes;

  void Run(const std::vector<Exchange>& exchanges) {
    outcomes.resize(exchanges.size());
    if (proxy == nullptr) return;
    const std::vector<Seen> seen = RunAll(proxy->port(), exchanges);
    for (std::size_t i = 0; i < seen.size(); ++i) outcomes[i].seen = seen[i];
  }
  /// Stops the proxy first: after that, all bytes that it sent have arrived at the upstream.
  void Collect() {
    if (proxy == nullptr) return;
    EXPECT_TRUE(proxy->alive()) << proxy->name() << ": " << proxy->Output();
    proxy->End();
    EXPECT_TRUE(upstream->WaitUntilAllClosed());
    for (Message& request : upstream->Requests()) {
      const std::string label = LabelOf(request.target);
      if (label.empty()) continue;
      const std::size_t index = std::stoul(label.substr(label.size() - 4)) - kFirstNumber;
      if (index < outcomes.size()) outcomes[index].forwarded.push_back(std::move(request));
    }
  }
};

std::vector<Exchange> ExchangesOf(const FramingCases& cases) {
  std::vector<Exchange> exchanges;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string marker = Numbered("/marker-$NNN", i);
    exchanges.push_back(
        {Numbered(cases[i].raw, i) + "GET " + marker + " HTTP/1.1\r\nHost: a\r\n\r\n", marker,
         cases[i].raw.starts_with("HEAD ")});
  }
  return exchanges;
}

// --- Checks ------------------------------------------------------------------

/// Returns true if a framing field has a tab around its value: readers treat such a tab
/// differently.
bool TabInFraming(std::string_view head) {
  for (std::size_t at = 0; (at = head.find('\t', at)) != std::string_view::npos; ++at) {
    const std::size_t begin = head.rfind('\n', at) + 1;
    const char first = head[begin];
    // The field is Content-Length or Transfer-Encoding.
    if ((first | 0x20) == 'c' || (first | 0x20) == 't') return true;
  }
  return false;
}

/// Expects that every connection to Tidegate's upstream has only complete requests that all readers
/// understand alike, and at most one incomplete request at the end.
void ExpectUnambiguous(const RawUpstream& upstream) {
  for (const std::string& bytes : upstream.Connections()) {
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const Message request = ReadRequest(rest);
      ASSERT_NE(request.frame, Frame::kBad) << request.why << ": " << Printable(rest);
      EXPECT_THAT(request.Field("transfer-encoding"), testing::AnyOf("", "chunked"));
      const std::string_view head = rest.substr(0, rest.find("\r\n\r\n"));
      EXPECT_FALSE(TabInFraming(head)) << Printable(head);
      if (request.frame == Frame::kPartial) break;
      EXPECT_FALSE(LabelOf(request.target).empty()) << "a stray: " << Printable(rest);
      rest.remove_prefix(request.size);
    }
  }
}

std::vector<std::string> DeclaredLabels(const FramingCase& one, std::size_t index) {
  if (one.want == Want::kRefused || one.want == Want::kWaits) return {};
  std::vector<std::string> labels = {Numbered("case-$NNN", index)};
  if (one.want == Want::kBoth) labels.push_back(Numbered("marker-$NNN", index));
  return labels;
}

void ExpectDeclared(const FramingCase& one, std::size_t index, const Outcome& outcome) {
  std::vector<std::string> labels;
  for (const Message& request : outcome.forwarded) labels.push_back(LabelOf(request.target));
  EXPECT_EQ(labels, DeclaredLabels(one, index));
  if (one.want == Want::kRefused) {
    EXPECT_EQ(outcome.seen.end, Seen::End::kClosed);
    EXPECT_FALSE(outcome.seen.answers.empty());
    for (const Message& answer : outcome.seen.answers) EXPECT_GE(answer.status, 400);
  }
  if (labels.empty() || labels != DeclaredLabels(one, index)) return;
  const Message& request = outcome.forwarded.front();
  if (one.body) {
    EXPECT_EQ(request.body, Numbered(*one.body, index));
  }
  for (const std::string& name : one.absent) EXPECT_EQ(request.Count(name), 0) << name;
  if (!one.host.empty()) {
    EXPECT_EQ(request.Field("host"), one.host);
  }
  if (labels.size() == 2) {
    EXPECT_EQ(outcome.forwarded[1].body, "");
  }
}

bool MayRefuse(Stricter stricter, Stricter who) {
  return stricter == Stricter::kBoth || stricter == who;
}

/// Expects that Tidegate is as strict as the stricter of nginx and HAProxy, where one of them
/// rejects a case or the two disagree about the end of a request.
void ExpectStrictest(const FramingCase& one, const Outcome& nginx, const Outcome& haproxy,
                     const Outcome& tidegate) {
  EXPECT_TRUE(one.stricter == Stricter::kNone || !one.why.empty()) << "no reason is given";
  for (const auto& [who, other] :
       {std::pair{Stricter::kNginx, &nginx}, std::pair{Stricter::kHaproxy, &haproxy}}) {
    if (MayRefuse(one.stricter, who)) continue;
    if (other->Refused()) {
      EXPECT_TRUE(tidegate.forwarded.empty()) << "forwarded although nginx or HAProxy rejects it";
    }
    if (nginx.Extent() == haproxy.Extent()) continue;
    EXPECT_LE(tidegate.forwarded.size(), other->forwarded.size())
        << "more requests than nginx or HAProxy forwards";
    EXPECT_LE(tidegate.Bytes(), other->Bytes()) << "more bytes than nginx or HAProxy forwards";
  }
}

/// Expects that no response belongs to a request of another connection, and that the response to
/// the marker does not come in the place of the response to the case.
void ExpectOwnAnswers(std::size_t index, const Outcome& outcome) {
  const std::string number = std::to_string(kFirstNumber + index);
  bool after_marker = false;
  for (const Message& answer : outcome.seen.answers) {
    EXPECT_FALSE(after_marker) << "a response after the response to the last request";
    const std::string label = LabelOf(answer.Field("x-answer-to"));
    if (label.empty()) continue;  // The proxy itself wrote this response.
    EXPECT_EQ(label.substr(label.size() - 4), number) << "the response to another request";
    after_marker = label.starts_with("marker");
  }
}

struct DecisionMetrics {
  int refused[3] = {0, 0, 0};
  int silent[3] = {0, 0, 0};
  int disagreements = 0;
  int stricter_of_two = 0;  ///< Number of disagreements in which Tidegate forwarded nothing.
};

void Count(const Outcome* (&outcomes)[3], DecisionMetrics& tally) {
  for (int i = 0; i < 3; ++i) {
    tally.refused[i] += outcomes[i]->Refused() ? 1 : 0;
    tally.silent[i] += outcomes[i]->seen.end == Seen::End::kSilent ? 1 : 0;
  }
  if (outcomes[0]->Extent() == outcomes[1]->Extent()) return;
  ++tally.disagreements;
  tally.stricter_of_two += outcomes[2]->forwarded.empty() ? 1 : 0;
}

void Print(std::size_t cases, const DecisionMetrics& tally) {
  std::printf(
      "%zu cases: refused by nginx %d, HAProxy %d, tidegate %d; left waiting by nginx %d, HAProxy "
      "%d, tidegate %d; nginx and HAProxy disagree on %d, of which tidegate refuses %d\n",
      cases, tally.refused[0], tally.refused[1], tally.refused[2], tally.silent[0], tally.silent[1],
      tally.silent[2], tally.disagreements, tally.stricter_of_two);
}

TEST(GatewayFramingTest, IsAsStrictAsTheStricterOfNginxAndHaproxy) {
  const FramingCases cases = AllFramingCases();
  const std::vector<Exchange> exchanges = ExchangesOf(cases);
  ASSERT_GE(cases.size(), 300u);
  Rig nginx;
  Rig haproxy;
  Rig tidegate;
  nginx.proxy = ProxyProcess::Nginx(nginx.upstream->port());
  haproxy.proxy = ProxyProcess::Haproxy(haproxy.upstream->port());
  tidegate.proxy = ProxyProcess::Tidegate(TIDEGATE_BINARY, tidegate.upstream->port());
  // Forget the request for `/ready`.
  for (Rig* rig : {&nginx, &haproxy, &tidegate}) rig->upstream->Reset();
  {
    std::vector<std::jthread> threads;
    for (Rig* rig : {&nginx, &haproxy, &tidegate}) {
      threads.emplace_back([rig, &exchanges] { rig->Run(exchanges); });
    }
  }
  for (Rig* rig : {&nginx, &haproxy, &tidegate}) rig->Collect();
  ExpectUnambiguous(*tidegate.upstream);
  const bool all = nginx.proxy != nullptr && haproxy.proxy != nullptr;
  DecisionMetrics tally;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Outcome* outcomes[] = {&nginx.outcomes[i], &haproxy.outcomes[i], &tidegate.outcomes[i]};
    SCOPED_TRACE("case '" + Printable(cases[i].name) + "': " +
                 Printable(cases[i].raw.substr(0, 300)) + "\n  nginx: " + outcomes[0]->Text() +
                 "\n  HAProxy: " + outcomes[1]->Text() + "\n  tidegate: " + outcomes[2]->Text());
    ExpectDeclared(cases[i], i, *outcomes[2]);
    if (all) ExpectStrictest(cases[i], *outcomes[0], *outcomes[1], *outcomes[2]);
    for (const Outcome* outcome : outcomes) ExpectOwnAnswers(i, *outcome);
    Count(outcomes, tally);
  }
  Print(cases.size(), tally);
  if (!all) GTEST_SKIP() << "nginx and HAProxy are not both installed: nothing to compare with";
}

}  // namespace
}  // namespace tidegate::gateway_test
