// SPDX-License-Identifier: Apache-2.0
// Runs the programs of docs/api.md as they are printed there, against a server and against
// responses that are not decisions. `./dev clients go` runs the Go program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "service/admin_case.hpp"
#include "service/fixture.hpp"

namespace tidegate {
namespace {

using service::AskAdmin;
using service::ByRule;
using service::Service;
using testing::ElementsAre;
using testing::MatchesRegex;

/// Returns the first code block in `language` after the heading "From a program" in docs/api.md.
std::string Snippet(const std::string& language) {
  std::ifstream in(TIDEGATE_SOURCE "/docs/api.md");
  std::ostringstream read;
  read << in.rdbuf();
  const std::string text = read.str();
  const std::string fence = "\n```" + language + "\n";
  const auto section = text.find("\n## From a program\n");
  const auto begin = text.find(fence, section);
  const auto end = text.find("\n```\n", begin + 1);
  if (section == std::string::npos || begin == std::string::npos || end == std::string::npos) {
    ADD_FAILURE() << "docs/api.md has no program in " << language;
    return {};
  }
  return text.substr(begin + fence.size(), end + 1 - begin - fence.size());
}

/// A program from the documentation, and a driver that makes it print its results: for four
/// identities, for an unknown rule, for a server that does not respond, and for the responses of a
/// server that the driver starts.
struct Program {
  const char* name;
  const char* language;
  const char* file;
  const char* command;
  const char* driver;  ///< Code that is appended to the snippet.
};

constexpr const char* kPython = R"py(

import http.server, sys, threading

class Other(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        status, _, body = self.path.lstrip("/").partition("/")
        self.rfile.read(int(self.headers["Content-Length"]))
        body = body.encode()
        self.send_response(int(status))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

def show(name, *arguments):
    try:
        ok, wait = allowed(*arguments)
        print(name, "passes" if ok else f"refused for {wait:.0f}")
    except RuntimeError as error:
        print(name, "error:", error)

url = sys.argv[1]
for identity in ["free", "limited", "banned", "banned-for-an-hour"]:
    show(identity, "demo", identity, url, 20)
show("unknown-rule", "no-such-rule", "free", url, 20)
show("no-server", "demo", "free", "http://127.0.0.1:1/v1/decide", 20)
other = http.server.HTTPServer(("127.0.0.1", 0), Other)
threading.Thread(target=other.serve_forever, daemon=True).start()
at = f"http://127.0.0.1:{other.server_port}"
show("closed", "demo", "free", at + '/503/{"allowed":false,"retry_after_ms":1000}', 20)
show("busy", "demo", "free", at + "/503/busy", 20)
show("foreign", "demo", "free", at + "/502/oops", 20)
)py";

constexpr const char* kNode = R"js(

const show = (name, ...question) => allowed(...question).then(
  ({ ok, retryAfterMs }) => console.log(name, ok ? "passes" :
    `refused for ${retryAfterMs === Infinity ? "inf" : Math.round(retryAfterMs / 1000)}`),
  (error) => console.log(name, "error:", error.message));
const url = process.argv[2];
for (const identity of ["free", "limited", "banned", "banned-for-an-hour"]) {
  await show(identity, "demo", identity, url, 20_000);
}
await show("unknown-rule", "no-such-rule", "free", url, 20_000);
await show("no-server", "demo", "free", "http://127.0.0.1:1/v1/decide", 20_000);
const { createServer } = await import("node:http");
const other = createServer((request, response) => {
  const [, status, body] = /^.(\d+).(.*)$/.exec(decodeURIComponent(request.url));
  request.resume().on("end", () => response.writeHead(Number(status)).end(body));
});
await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
const at = `http://127.0.0.1:${other.address().port}`;
await show("closed", "demo", "free", `${at}/503/{"allowed":false,"retry_after_ms":1000}`, 20_000);
await show("busy", "demo", "free", `${at}/503/busy`, 20_000);
await show("foreign", "demo", "free", `${at}/502/oops`, 20_000);
other.closeAllConnections();
other.close();
)js";

std::vector<std::string> LinesOf(const std::string& command) {
  std::vector<std::string> lines;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {"cannot start " + command};
  std::string text;
  std::array<char, 4096> bytes{};
  while (const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), pipe)) {
    text.append(bytes.data(), got);
  }
  EXPECT_EQ(pclose(pipe), 0) << command << "\n" << text;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class DocumentationProgramTest : public testing::TestWithParam<Program> {
 protected:
  DocumentationProgramTest() {
    std::string name = (std::filesystem::temp_directory_path() / "tidegate-docs-XXXXXX").string();
    folder_ = mkdtemp(name.data()) == nullptr ? std::string() : name;
  }
  ~DocumentationProgramTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string folder_;
};

TEST_P(DocumentationProgramTest, AppliesDecisionsAndAllowsRequestsWithoutDecision) {
  ASSERT_FALSE(folder_.empty());
  Service service("rules: [ { id: demo, per: header:x-api-key, limit: 1/h } ]");
  ASSERT_EQ(service.Decide(ByRule("demo", "limited")).status, 200);
  ASSERT_EQ(AskAdmin(service, "/v1/ban", ByRule("demo", "banned")).status, 200);
  ASSERT_EQ(
      AskAdmin(service, "/v1/ban", ByRule("demo", "banned-for-an-hour", R"(,"ttl":"1h")")).status,
      200);

  const Program& program = GetParam();
  const std::string file = folder_ + "/" + program.file;
  std::ofstream(file) << Snippet(program.language) << program.driver;
  EXPECT_THAT(
      LinesOf(std::string(program.command) + " " + file +
              " http://127.0.0.1:" + std::to_string(service.api().port()) + "/v1/decide"),
      ElementsAre("free passes", "limited refused for 3600", "banned refused for inf",
                  MatchesRegex("banned-for-an-hour refused for (3600|359[0-9])"),
                  MatchesRegex("unknown-rule error: .*no-such-rule.*"), "no-server passes",
                  "closed refused for 1", "busy passes", MatchesRegex("foreign error: .*502.*")));
}

INSTANTIATE_TEST_SUITE_P(Programs, DocumentationProgramTest,
                         testing::Values(Program{"Python", "python", "allowed.py", "python3",
                                                 kPython},
                                         Program{"Node", "js", "allowed.mjs", "node", kNode}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace tidegate
