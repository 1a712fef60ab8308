// SPDX-License-Identifier: Apache-2.0
// Messages and exit codes when TLS fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/fake_admin.hpp"
#include "cli/tls_case.hpp"

namespace tidegate::cli_test {
namespace {

using namespace std::chrono_literals;
using cli::kNoAnswer;
using cli::kOk;
using cli::kUsage;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class TlsErrorsTest : public TlsCase {
 protected:
  /// Sends a request to a server with the certificate `own`, expects the exit code `exit`, and
  /// returns the error output.
  std::string RequestStatus(const Credentials& own, int exit,
                            const std::string& host = "127.0.0.1") {
    TlsPeer peer(own, TlsPeer::RespondsWith(StatusResponse()));
    EXPECT_EQ(cli::Status(To(peer.port(), host), console_), exit);
    return Err();
  }
};

// --- The server's certificate -----------------------------------------------------

TEST_F(TlsErrorsTest, ReportsUnknownAuthority) {
  TlsPeer peer(Local(), TlsPeer::RespondsWith(StatusResponse()));
  cli::ClientOptions options = To(peer.port());
  options.tls.ca.clear();
  EXPECT_EQ(cli::Status(options, console_), kNoAnswer);
  EXPECT_EQ(Err(),
            "tidegate status: https://127.0.0.1:" + std::to_string(peer.port()) +
                ": the server's certificate is not trusted: name the authority that signed it with "
                "--ca-file (unable to get local issuer certificate)\n");
  options.tls.ca = File("theirs.pem", Theirs().pem());
  EXPECT_EQ(cli::Status(options, console_), kNoAnswer);
  EXPECT_THAT(Err(), HasSubstr("no authority in " + options.tls.ca + " has signed it ("));
  options.tls.ca = File("both.pem", Theirs().pem() + Ours().pem());
  EXPECT_EQ(cli::Status(options, console_), kOk)
      << "rejected although one of several authorities has signed the certificate";
}

TEST_F(TlsErrorsTest, ReportsCertificateForOtherNames) {
  EXPECT_THAT(
      RequestStatus(Ours().Issue("x", "DNS:a.example.com,IP:192.0.2.7,IP:::1"), kNoAnswer),
      HasSubstr("the server's certificate is not for 127.0.0.1 but for a.example.com, 192.0.2.7, "
                "::1: use a name of the certificate with --admin\n"));
  EXPECT_THAT(
      RequestStatus(Ours().Issue("x", "DNS:a,DNS:b,DNS:c,DNS:d,DNS:e,DNS:f,DNS:g"), kNoAnswer),
      HasSubstr("but for a, b, c, d, e and 2 more: "));
  EXPECT_THAT(RequestStatus(Ours().Issue("x", "IP:127.0.0.1"), kNoAnswer, "localhost"),
              HasSubstr("is not for localhost but for 127.0.0.1: "))
      << "an IP address matched a DNS name of the certificate";
  EXPECT_THAT(RequestStatus(Ours().Issue("x", "DNS:127.0.0.1"), kNoAnswer),
              HasSubstr("is not for 127.0.0.1 but for 127.0.0.1"))
      << "a host name matched an IP address of the certificate";
  EXPECT_THAT(RequestStatus(Ours().Issue("localhost", "email:a@b"), kNoAnswer),
              HasSubstr("for no host: "));
}

TEST_F(TlsErrorsTest, EscapesNamesInCertificates) {
  const std::string output =
      RequestStatus(Ours().Issue("x", "DNS:a\x1b[2J.example.com"), kNoAnswer, "localhost");
  EXPECT_THAT(output, HasSubstr("a\\x1b[2J.example.com"));
  EXPECT_THAT(output, Not(HasSubstr("\x1b")));
}

TEST_F(TlsErrorsTest, ReportsExpiredCertificate) {
  EXPECT_THAT(
      RequestStatus(Ours().Issue("x", "IP:127.0.0.1", Authority::Validity::kOver), kNoAnswer),
      HasSubstr("the peer's certificate is not accepted: certificate has expired; the "
                "server needs a new certificate, or a clock is wrong\n"));
}

// --- TLS and other protocols ------------------------------------------------------

TEST_F(TlsErrorsTest, ReportsServerWithoutTls) {
  ScriptedUpstream plain([](ScriptedUpstream::Connection& connection) {
    connection.Send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    connection.EndSending();
    (void)connection.WaitForEnd();
  });
  const std::string where = "127.0.0.1:" + std::to_string(plain.port());
  EXPECT_EQ(cli::Status(To(plain.port()), console_), kUsage);
  EXPECT_EQ(Err(), "tidegate status: https://" + where +
                       ": the server does not support TLS: use --admin http://" + where + "\n");
}

TEST_F(TlsErrorsTest, ReportsServerThatRequiresTls) {
  const std::string nginx =
      "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
      "<html><center>The plain HTTP request was sent to HTTPS port</center></html>";
  const std::string go =
      "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
  const std::string alert("\x15\x03\x01\x00\x02\x02\x46", 7);
  for (const std::string& answer : {nginx, go, alert}) {
    ScriptedUpstream server([&](ScriptedUpstream::Connection& connection) {
      connection.Send(answer);
      connection.EndSending();
      (void)connection.WaitForEnd();
    });
    const std::string where = "127.0.0.1:" + std::to_string(server.port());
    EXPECT_EQ(cli::Status({.server = where, .timeout = 10s}, console_), kUsage) << answer;
    EXPECT_EQ(Err(), AdviceToUseTls(where));
  }
}

TEST_F(TlsErrorsTest, ReportsMissingServerAndOtherProtocols) {
  FakeAdmin fake;
  fake.End();
  cli::ClientOptions options = To(1);
  options.server = "https://" + fake.address();
  EXPECT_EQ(cli::Status(options, console_), kNoAnswer);
  EXPECT_THAT(Err(), HasSubstr("https://" + fake.address() + ": no server listens there"));
  TlsPeer peer(Local(), TlsPeer::RespondsWith("220 mail.example.com ESMTP\r\n"));
  EXPECT_EQ(cli::Status(To(peer.port()), console_), kNoAnswer);
  EXPECT_THAT(Err(),
              HasSubstr("the response is not HTTP/1.1; is another program listening there?\n"));
}

TEST_F(TlsErrorsTest, BenchRejectsTls) {
  EXPECT_EQ(cli::Bench({.client = {.server = "https://127.0.0.1:1"}, .rule = "r"}, console_),
            kUsage);
  EXPECT_THAT(Err(), HasSubstr("tidegate bench: --server: bench does not support TLS: name a "));
  EXPECT_EQ(cli::Bench({.resp = "https://127.0.0.1:1", .rule = "r"}, console_), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--resp: bench does not support TLS"));
}

// --- The caller's certificate -----------------------------------------------------

class TlsClientCertificateTest : public TlsCase, public testing::WithParamInterface<int> {
 protected:
  TlsPeer peer_{Local(), TlsPeer::RespondsWith(StatusResponse()), Ours().pem(), GetParam()};
  const Credentials own_ = Ours().Issue("caller", "DNS:caller");
};

TEST_P(TlsClientCertificateTest, ServesCallerWithCertificate) {
  cli::ClientOptions options = To(peer_.port());
  options.tls.certificate = File("cert.pem", own_.certificate);
  options.tls.key = File("key.pem", own_.key);
  EXPECT_EQ(cli::Status(options, console_), kOk) << Err();
  for (const std::string& both : {own_.certificate + own_.key, own_.key + own_.certificate}) {
    options.tls.certificate = File("both.pem", both);
    options.tls.key.clear();
    EXPECT_EQ(cli::Status(options, console_), kOk) << Err();
  }
}

TEST_P(TlsClientCertificateTest, AdvisesCallerToPresentCertificate) {
  EXPECT_EQ(cli::Status(To(peer_.port()), console_), kUsage);
  EXPECT_EQ(Err(), "tidegate status: https://127.0.0.1:" + std::to_string(peer_.port()) +
                       ": the server requires a client certificate: name yours with --cert-file "
                       "and --key-file\n");
}

TEST_P(TlsClientCertificateTest, ReportsThatServerRejectsCertificate) {
  for (const Credentials& wrong :
       {Theirs().Issue("caller", "DNS:caller"),
        Ours().Issue("caller", "DNS:caller", Authority::Validity::kOver)}) {
    cli::ClientOptions options = To(peer_.port());
    options.tls.certificate = File("cert.pem", wrong.certificate + wrong.key);
    EXPECT_EQ(cli::Status(options, console_), kUsage);
    EXPECT_THAT(Err(), HasSubstr("the server does not accept the certificate of --cert-file ("));
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, TlsClientCertificateTest,
                         testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         [](const testing::TestParamInfo<int>& of) {
                           return of.param == TLS1_2_VERSION ? "Tls12" : "Tls13";
                         });

// --- Files ------------------------------------------------------------------------

TEST_F(TlsErrorsTest, RejectsUnusableFilesBeforeConnecting) {
  const Credentials own = Ours().Issue("caller", "DNS:caller");
  const Credentials other = Ours().Issue("caller", "DNS:caller");
  const Credentials rsa =
      Ours().Issue("caller", "DNS:caller", Authority::Validity::kNow, Authority::Key::kRsa);
  const std::string missing = (folder_ / "missing.pem").string();
  const std::string folder = folder_.string();
  const std::string junk = File("junk.pem", "secret-junk");
  const std::string cert = File("cert.pem", own.certificate);
  const std::string key = File("key.pem", own.key);
  const std::string other_key = File("other-key.pem", other.key);
  const std::string rsa_key = File("rsa-key.pem", rsa.key);
  struct Case {
    cli::TlsOptions files;
    std::string output;
  };
  for (const Case& c : {
           Case{{.ca = missing}, missing + " of --ca-file cannot be read: No such file"},
           Case{{.ca = folder}, folder + " of --ca-file cannot be read: Is a directory"},
           Case{{.ca = junk}, junk + " of --ca-file must hold certificates in PEM form"},
           Case{{.ca = key}, key + " of --ca-file must hold certificates in PEM form"},
           Case{{.certificate = missing, .key = key}, missing + " of --cert-file cannot be read"},
           Case{{.certificate = junk, .key = key}, junk + " of --cert-file must hold"},
           Case{{.certificate = cert, .key = missing}, missing + " of --key-file cannot be read"},
           Case{{.certificate = cert, .key = junk}, junk + " of --key-file does not hold the "},
           Case{{.certificate = cert, .key = other_key}, "the private key that fits the cert"},
           Case{{.certificate = cert, .key = rsa_key}, "the private key that fits the cert"},
           Case{{.certificate = cert}, "name that file with --key-file\n"},
           Case{{.key = key}, "name the certificate of the key\n"},
       }) {
    // No server listens on port 1: a command that tried to connect would fail with another exit
    // code.
    EXPECT_EQ(cli::Status({.server = "https://127.0.0.1:1", .tls = c.files}, console_), kUsage)
        << c.output;
    const std::string output = Err();
    EXPECT_THAT(output, HasSubstr(c.output));
    EXPECT_THAT(output, Not(HasSubstr("secret-junk")));
  }
  setenv("TIDEGATE_CA_FILE", missing.c_str(), 1);
  EXPECT_EQ(cli::Status({.server = "https://127.0.0.1:1"}, console_), kUsage);
  EXPECT_THAT(Err(), HasSubstr(missing + " of TIDEGATE_CA_FILE cannot be read"));
}

TEST_F(TlsErrorsTest, RejectsTlsFilesWithoutHttps) {
  FakeAdmin fake;
  for (const cli::TlsOptions& files :
       {cli::TlsOptions{.ca = "a"}, cli::TlsOptions{.certificate = "a"},
        cli::TlsOptions{.key = "a"}}) {
    EXPECT_EQ(cli::Status({.server = fake.address(), .tls = files}, console_), kUsage);
    EXPECT_THAT(Err(), HasSubstr("are for TLS: use --admin https://" + fake.address() + "\n"));
  }
  EXPECT_THAT(fake.Requests(), IsEmpty());
  setenv("TIDEGATE_CA_FILE", "/nonexistent", 1);
  EXPECT_EQ(cli::Status({.server = fake.address(), .timeout = 10s}, console_), kOk)
      << "the environment variable is an error although it may be ignored";
}

}  // namespace
}  // namespace tidegate::cli_test
