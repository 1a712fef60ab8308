// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of commands over TLS: files with certificates, and a server whose behaviour
// the test scripts.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "cli/admin_client.hpp"
#include "gateway/behaviour/scripted_upstream.hpp"
#include "gateway/behaviour/tls_side.hpp"

namespace tidegate::cli_test {

using behaviour::Authority;
using behaviour::Credentials;
using behaviour::ScriptedUpstream;
using behaviour::TlsContext;
using behaviour::TlsSide;

/// The authority that the commands trust, and another authority that they do not trust.
inline const Authority& Ours() {
  static const Authority kOurs("our authority");
  return kOurs;
}
inline const Authority& Theirs() {
  static const Authority kTheirs("another authority");
  return kTheirs;
}

/// Returns a certificate for this machine, signed by Ours().
inline Credentials Local() { return Ours().Issue("local", "DNS:localhost,IP:127.0.0.1"); }

/// A TLS server that calls a handler for each connection after the handshake. It closes the
/// connection when the handler returns, without close_notify unless the handler sent one.
class TlsPeer {
 public:
  using Handler = std::function<void(TlsSide&)>;
  explicit TlsPeer(const Credentials& own, Handler handler,
                   const std::string& client_authority = {}, int most_version = TLS1_3_VERSION)
      : context_(own, client_authority),
        server_([this, handler = std::move(handler)](ScriptedUpstream::Connection& connection) {
          TlsSide side(context_, connection.fd());
          if (side.Accept()) handler(side);
          connection.EndSending();
          (void)connection.WaitForEnd();
        }) {
    SSL_CTX_set_max_proto_version(context_.get(), most_version);
  }
  /// Returns a handler that responds to one request with these bytes, and then sends close_notify.
  static Handler RespondsWith(std::string bytes) {
    return [bytes = std::move(bytes)](TlsSide& side) {
      if (side.ReadRequest().empty()) return;
      side.Send(bytes);
      side.EndInOrder();
    };
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return server_.port(); }

 private:
  TlsContext context_;
  ScriptedUpstream server_;
};

/// Returns the smallest response that `tidegate status` accepts.
inline std::string StatusResponse() {
  return behaviour::Http("200 OK", {}, R"({"version":"0.1.0","node":"n1"})");
}

/// Returns the message of `tidegate status` about a server that requires TLS.
inline std::string AdviceToUseTls(const std::string& where) {
  return "tidegate status: " + where + ": the server requires TLS: use --admin https://" + where +
         "\n";
}

class TlsCase : public testing::Test {
 protected:
  TlsCase() {
    unsetenv("TIDEGATE_TOKEN");
    unsetenv("TIDEGATE_CA_FILE");
    std::filesystem::create_directories(folder_);
  }
  ~TlsCase() override {
    std::filesystem::remove_all(folder_);
    unsetenv("TIDEGATE_CA_FILE");
  }

  std::string File(const std::string& name, const std::string& text) {
    const auto file = folder_ / name;
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }
  /// Returns options for a server on `port` that trust Ours().
  cli::ClientOptions To(std::uint16_t port, const std::string& host = "127.0.0.1") {
    return {.server = "https://" + host + ":" + std::to_string(port),
            .tls = {.ca = File("ca.pem", Ours().pem())},
            .timeout = std::chrono::seconds{10}};
  }
  std::string Out() const { return out_.str(); }
  /// Returns the output on the error stream since the last call.
  std::string Err() {
    std::string output = err_.str();
    err_.str("");
    return output;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("tidegate-cli-tls-" + std::to_string(getpid()));
  std::ostringstream out_;
  std::ostringstream err_;
  cli::Console console_{out_, err_};
};

}  // namespace tidegate::cli_test
