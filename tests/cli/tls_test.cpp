// SPDX-License-Identifier: Apache-2.0
// The commands over TLS: against a real server, and against a server that ends connections as the
// test scripts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/fake_admin.hpp"
#include "cli/tls_case.hpp"
#include "service/fixture.hpp"
#include "support/wait.hpp"

namespace tidegate::cli_test {
namespace {

using namespace std::chrono_literals;
using cli::kNoAnswer;
using cli::kOk;
using cli::kRuntime;
using cli::kUsage;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// --- A real server ----------------------------------------------------------------

class CommandsOverTlsTest : public TlsCase {
 protected:
  static Config WithTls() {
    Config config = service::Service::ConfigOf(
        "rules:\n  - {id: per-key, per: header:x-api-key, limit: 3/s}\n");
    const Credentials own = Local();
    const ListenTls tls{.certificates = {{own.certificate, own.key}}};
    config.listen.api.tls = tls;
    config.listen.admin.tls = tls;
    config.listen.admin.auth = ListenSpec::Auth::kRequired;
    config.access.tokens = {{.name = "ops", .secret = kToken, .may = TokenSpec::May::kAll}};
    return config;
  }
  cli::ClientOptions Admin(const std::string& host = "127.0.0.1") {
    cli::ClientOptions options = To(service_.admin().port(), host);
    options.token_file = File("token", kToken);
    return options;
  }

  static constexpr const char* kToken = "0123456789abcdef";
  service::Service service_{WithTls()};
};

TEST_F(CommandsOverTlsTest, ConnectsByAddressAndByName) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    out_.str("");
    EXPECT_EQ(cli::Status(Admin(host), console_), kOk) << host << ": " << Err();
    EXPECT_THAT(Out(), StartsWith("server      tidegate test, node ")) << host;
  }
  EXPECT_THAT(Err(), IsEmpty());
}

TEST_F(CommandsOverTlsTest, ReadsAuthorityFromEnvironment) {
  cli::ClientOptions options = Admin();
  setenv("TIDEGATE_CA_FILE", options.tls.ca.c_str(), 1);
  options.tls.ca.clear();
  EXPECT_EQ(cli::Status(options, console_), kOk) << Err();
  setenv("TIDEGATE_CA_FILE", "", 1);
  EXPECT_EQ(cli::Status(options, console_), kNoAnswer) << "an empty variable was not ignored";
  setenv("TIDEGATE_CA_FILE", File("theirs.pem", Theirs().pem()).c_str(), 1);
  options.tls.ca = Admin().tls.ca;
  EXPECT_EQ(cli::Status(options, console_), kOk) << "the option does not override the environment";
}

TEST_F(CommandsOverTlsTest, SendsChangesAndDecisions) {
  EXPECT_EQ(cli::ChangeKey({.change = cli::Change::kBan,
                            .client = Admin(),
                            .selector = {.rule = "per-key", .identity = "abc"},
                            .duration = "1h"},
                           console_),
            kOk)
      << Err();
  EXPECT_THAT(Out(), StartsWith("banned: per-key header:x-api-key=~"));
  const cli::ClientOptions api = To(service_.api().port());
  EXPECT_EQ(cli::Decide({.client = api, .rule = "per-key", .identity = "def"}, console_), kOk)
      << Err();
  EXPECT_EQ(cli::Decide({.client = api, .rule = "per-key", .identity = "abc"}, console_), kRuntime)
      << "the ban has no effect: " << Err();
}

TEST_F(CommandsOverTlsTest, TopShowsDecisionsOverTls) {
  EXPECT_EQ(cli::Top({.client = Admin(), .every = 10ms, .once = true}, console_), kOk) << Err();
  EXPECT_THAT(Out(), StartsWith("tidegate test  node "));
  EXPECT_THAT(Out(), HasSubstr("per-key"));
}

TEST_F(CommandsOverTlsTest, PlainTextRequestFailsWithAdviceToUseTls) {
  cli::ClientOptions options = Admin();
  options.tls = {};
  const std::string where = "127.0.0.1:" + std::to_string(service_.admin().port());
  for (const std::string& written : {where, "http://" + where}) {
    options.server = written;
    EXPECT_EQ(cli::Status(options, console_), kUsage);
    EXPECT_EQ(Err(), AdviceToUseTls(where));
  }
  const std::string api = "127.0.0.1:" + std::to_string(service_.api().port());
  options.server = api;
  EXPECT_EQ(cli::Decide({.client = options, .rule = "per-key", .identity = "a"}, console_), kUsage);
  EXPECT_THAT(Err(), HasSubstr("the server requires TLS: use --server https://" + api));
}

// --- Requests that are sent -------------------------------------------------------

class CommandTlsConnectionTest : public TlsCase {};

TEST_F(CommandTlsConnectionTest, SendsHostServerNameAndToken) {
  std::mutex mutex;
  std::string head;
  std::string name;
  TlsPeer peer(Local(), [&](TlsSide& side) {
    const std::lock_guard lock(mutex);
    head = side.ReadRequest();
    name = side.server_name();
    side.Send(StatusResponse());
    side.EndInOrder();
  });
  cli::ClientOptions options = To(peer.port(), "localhost");
  options.token_file = File("token", "0123456789abcdef");
  EXPECT_EQ(cli::Status(options, console_), kOk) << Err();
  EXPECT_THAT(Err(), IsEmpty()) << "a warning although the token is encrypted";
  const std::lock_guard lock(mutex);
  EXPECT_THAT(head, StartsWith("GET /v1/status HTTP/1.1\r\nHost: localhost:" +
                               std::to_string(peer.port()) + "\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nAuthorization: Bearer 0123456789abcdef\r\n"));
  EXPECT_EQ(name, "localhost");
}

TEST_F(CommandTlsConnectionTest, SendsNothingToUntrustedServer) {
  std::atomic<bool> received{false};
  TlsPeer peer(Theirs().Issue("local", "IP:127.0.0.1"),
               [&](TlsSide& side) { received = !side.ReadRequest().empty(); });
  EXPECT_EQ(cli::Status(To(peer.port()), console_), kNoAnswer);
  EXPECT_FALSE(received);
}

// --- End of a connection ----------------------------------------------------------

TEST_F(CommandTlsConnectionTest, FailsOnTruncatedResponse) {
  struct Case {
    const char* what;
    std::string bytes;
    bool goodbye;
    int exit;
  };
  const std::string whole = StatusResponse();
  const std::string body = R"({"version":"0.1.0","node":"n1"})";
  const std::string endless = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body;
  const std::string chunk =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\n" + body + "\r\n";
  ASSERT_EQ(body.size(), 0x1fu);
  for (const Case& c : {
           Case{"all of it, and a goodbye", whole, true, kOk},
           Case{"all of it, then cut", whole, false, kOk},
           Case{"cut in its body", whole.substr(0, whole.size() - 1), false, kNoAnswer},
           Case{"ended in its body", whole.substr(0, whole.size() - 1), true, kNoAnswer},
           Case{"cut in its head", whole.substr(0, 20), false, kNoAnswer},
           Case{"without a length, and a goodbye", endless, true, kOk},
           Case{"without a length, cut", endless, false, kNoAnswer},
           Case{"all chunks, then cut", chunk + "0\r\n\r\n", false, kOk},
           Case{"cut before the last chunk", chunk, false, kNoAnswer},
           Case{"nothing, cut", "", false, kNoAnswer},
           Case{"nothing, and a goodbye", "", true, kNoAnswer},
       }) {
    TlsPeer peer(Local(), [&](TlsSide& side) {
      (void)side.ReadRequest();
      side.Send(c.bytes);
      if (c.goodbye) side.EndInOrder();
    });
    EXPECT_EQ(cli::Status(To(peer.port()), console_), c.exit) << c.what;
    const std::string output = Err();
    if (c.exit == kOk) {
      EXPECT_EQ(output, "") << c.what;
    } else {
      EXPECT_THAT(output, HasSubstr("https://127.0.0.1:" + std::to_string(peer.port()) + ": "))
          << c.what;
      EXPECT_THAT(output,
                  HasSubstr(c.bytes.empty() ? "without a response" : "closed before the end"))
          << c.what;
    }
  }
}

TEST_F(CommandTlsConnectionTest, FailsWhenHandshakeTimesOut) {
  FakeAdmin silent;
  silent.KeepSilent(true);
  cli::ClientOptions options = To(1);
  options.server = "https://" + silent.address();
  options.timeout = 30ms;
  EXPECT_EQ(cli::Status(options, console_), kNoAnswer);
  EXPECT_EQ(Err(), "tidegate status: https://" + silent.address() +
                       ": no TLS handshake within 30 ms; is this a TLS port? If so, wait longer "
                       "with --timeout\n");
}

TEST_F(CommandTlsConnectionTest, TimeoutCoversWholeRequestAndResponse) {
  // After the handshake the server sends one byte at a time, each before a wait for a single byte
  // would time out.
  std::atomic<bool> over{false};
  TlsPeer peer(Local(), [&](TlsSide& side) {
    (void)side.ReadRequest();
    side.Send("HTTP/1.1 200 OK\r\nX-Filler: ");
    while (!over && side.Send("x")) std::this_thread::sleep_for(5ms);
  });
  cli::ClientOptions options = To(peer.port());
  options.timeout = 300ms;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(cli::Status(options, console_), kNoAnswer);
  over = true;
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_THAT(Err(), HasSubstr("within 300 ms"));
}

TEST_F(CommandTlsConnectionTest, CanBeCancelledDuringAndAfterHandshake) {
  FakeAdmin silent;
  silent.KeepSilent(true);
  TlsPeer peer(Local(), [](TlsSide& side) {
    while (!side.ReadRequest().empty()) {
    }
  });
  for (const std::string& server :
       {"https://" + silent.address(), "https://127.0.0.1:" + std::to_string(peer.port())}) {
    cli::ClientOptions options = To(1);
    options.server = server;
    options.timeout = 1h;
    auto client = cli::AdminClient::Make(options);
    ASSERT_TRUE(client);
    const net::Descriptor cancel(eventfd(0, EFD_CLOEXEC));
    client->CancelBy(cancel.get());
    std::atomic<bool> done{false};
    std::thread asker([&] {
      EXPECT_FALSE(client->Send({.target = "/v1/status"}));
      done = true;
    });
    (void)eventfd_write(cancel.get(), 1);
    EXPECT_TRUE(test::WaitUntil([&] { return done.load(); })) << server;
    asker.join();
  }
}

TEST_F(CommandTlsConnectionTest, SurvivesServerThatClosesConnection) {
  // Default handling of SIGPIPE, as in the tidegate program: other tests of TLS ignore this signal.
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  const auto tls = cli::TlsCredentials::Load(To(1).tls);
  ASSERT_TRUE(tls);
  ScriptedUpstream closes([&](ScriptedUpstream::Connection& connection) {
    TlsContext context(Local());
    std::signal(SIGPIPE, SIG_DFL);
    TlsSide side(context, connection.fd());
    (void)side.Accept();
  });
  const cli::HttpClient client{.server = {.host = "127.0.0.1", .port = closes.port(), .tls = true},
                               .tls = *tls,
                               .timeout = 10s};
  const auto answer = client.Send({.target = "/", .body = std::string(32u << 20, 'x')});
  EXPECT_FALSE(answer);
  sigset_t set;
  pthread_sigmask(SIG_SETMASK, nullptr, &set);
  EXPECT_EQ(sigismember(&set, SIGPIPE), 0) << "SIGPIPE is still blocked";
  sigpending(&set);
  EXPECT_EQ(sigismember(&set, SIGPIPE), 0);
  std::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace tidegate::cli_test
