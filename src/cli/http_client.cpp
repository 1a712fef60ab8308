// SPDX-License-Identifier: Apache-2.0
#include "cli/http_client.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <expected>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "base/ascii.hpp"
#include "base/failure.hpp"
#include "base/message_text.hpp"
#include "base/units.hpp"
#include "net/channel.hpp"
#include "net/http1_body.hpp"
#include "net/http1_parser.hpp"
#include "net/resolver.hpp"

namespace tidegate::cli {
namespace {

constexpr std::string_view kForm =
    "is not the address of a server: write HOST:PORT, as in 127.0.0.1:9180 or [::1]:9180, "
    "or https://HOST:PORT";

/// Returns true if `host` has no character that could end a Host field or hide in a message.
bool IsHost(std::string_view host) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";
  return !host.empty() && host.find_first_not_of(kAllowed) == std::string_view::npos;
}

/// The largest response that is read. A thousand rules with their matches take some hundred KiB.
constexpr std::size_t kMaxResponseBytes = 64u << 20;
/// The most names of a certificate in a message. Certificates of large sites have a hundred.
constexpr std::size_t kMaxNames = 5;

/// The bodies with which servers reject plain HTTP on a TLS port: ours, nginx's and Go's.
constexpr std::array<std::string_view, 3> kWantTls{"this port requires TLS",
                                                   "plain HTTP request was sent to HTTPS port",
                                                   "HTTP request to an HTTPS server"};
/// Other servers send a TLS alert, a record that begins with these bytes.
constexpr std::string_view kAlert = "\x15\x03";

/// Blocks SIGPIPE on this thread while it lives, and discards one that was raised meanwhile:
/// OpenSSL writes to sockets without MSG_NOSIGNAL. Outside of an exchange the signal is unchanged.
class PipeSignalBlock {
 public:
  PipeSignalBlock() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalBlock() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec at_once{};
    while (sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalBlock(const PipeSignalBlock&) = delete;
  PipeSignalBlock& operator=(const PipeSignalBlock&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

/// Connects the socket `fd`. Returns 0, or the errno of the failure.
int ConnectTo(int fd, const net::SocketAddress& to, const Deadline& deadline) {
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to.storage), to.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!deadline.Wait(fd, POLLOUT)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::string ListOf(const std::vector<std::string>& names) {
  if (names.empty()) return "no host";
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNames); ++i) {
    list += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() <= kMaxNames) return list;
  return list + " and " + std::to_string(names.size() - kMaxNames) + " more";
}

/// Parses all bytes of a connection. `closed`: the server closed it in order, which may end a body.
net::Parsed ParseResponse(std::span<char> bytes, bool closed, HttpResponse& response) {
  const auto head = std::make_unique<net::ResponseHead>();
  do {  // Interim responses come first.
    net::ResponseParser parser;
    const std::string_view rest(bytes.data(), bytes.size());
    const net::Parsed parsed = parser.Parse(rest, {}, net::AnswerTo::kOther, *head);
    if (parsed != net::Parsed::kDone) return parsed;
    bytes = bytes.subspan(parser.consumed());
  } while (head->status < 200);
  response.status = head->status;
  net::BodyReader reader;
  reader.Begin(head->body, head->content_length);
  for (;;) {
    const net::Parsed parsed = reader.Read(bytes);
    if (parsed != net::Parsed::kRefused) response.body += reader.data();
    if (parsed != net::Parsed::kMore) return parsed;
    if (reader.eaten() == 0) return reader.EndsAtClose() && closed ? net::Parsed::kDone : parsed;
    bytes = bytes.subspan(reader.eaten());
  }
}

/// One request and its response on a connection of their own.
class Exchange {
 public:
  Exchange(const HttpClient& client, const HttpRequest& request)
      : client_(client), request_(request), deadline_(client.timeout, client.cancel) {}

  Result<HttpResponse> Run() {
    using Got = net::Channel::Got;
    auto socket = client_.Connect(deadline_);
    if (!socket) return std::unexpected(std::move(socket.error()));
    channel_.Open(*std::move(socket));
    if (client_.server.tls) {
      if (auto done = Handshake(); !done) return std::unexpected(std::move(done.error()));
    }
    WriteRequest(channel_.out());
    // A failure to write is not an error here, because the server may have sent a response before
    // it closed the connection: reading finds out.
    while (channel_.Flush() && channel_.blocked()) {
      if (!Wait(POLLOUT)) return FailTimeout();
    }
    Got got = Got::kNothing;
    while (got != Got::kEnd && got != Got::kBroken) {
      got = channel_.Fill();
      if (got == Got::kFull && !channel_.Grow(kMaxResponseBytes + 1)) {
        return Fail("the response is longer than 64 MiB");
      }
      if (got == Got::kNothing && !Wait(POLLIN)) return FailTimeout();
    }
    if (got == Got::kBroken && channel_.tls() != nullptr) {
      problem_ = channel_.tls()->problem();
    } else if (got == Got::kBroken && errno != ECONNRESET) {
      problem_ = std::generic_category().message(errno);
    }
    HttpResponse response;
    const net::Parsed parsed = ParseResponse(channel_.raw(), got == Got::kEnd, response);
    if (parsed != net::Parsed::kDone) return FailIncomplete(channel_.input(), parsed);
    const auto contains = [&](std::string_view text) { return response.body.contains(text); };
    if (!client_.server.tls && response.status == 400 && std::ranges::any_of(kWantTls, contains)) {
      return FailPlain();
    }
    return response;
  }

 private:
  /// Waits until the socket is ready for `plain` (of poll), or with TLS for what TLS needs. Returns
  /// false if the time is up.
  [[nodiscard]] bool Wait(short plain) {
    const net::TlsSession* const tls = channel_.tls();
    const bool writes = tls == nullptr ? plain == POLLOUT : tls->wants_to_write();
    if (!deadline_.Wait(channel_.fd(), writes ? POLLOUT : POLLIN)) return false;
    channel_.OnEvents(EPOLLIN);  // Reading is worth a try, whatever was awaited.
    return true;
  }

  Result<void> Handshake() {
    using Shake = net::TlsSession::Shake;
    if (!channel_.BeginTls(*client_.tls.client, client_.server.CertifiedName())) {
      return Fail("not enough memory for TLS");
    }
    for (;;) {
      const Shake shake = channel_.tls()->Handshake();
      if (shake == Shake::kDone) return {};
      if (shake == Shake::kFailed) return FailTls();
      if (!Wait(POLLIN)) {
        return Fail("no TLS handshake within " + FormatDuration(client_.timeout) +
                    "; is this a TLS port? If so, wait longer with --timeout");
      }
    }
  }

  void WriteRequest(net::OutBuffer& out) const {
    out << RequestHead(client_.server, request_.body ? "POST" : "GET", request_.target,
                       client_.token)
        << "Connection: close\r\n";
    if (request_.body) {
      out << "Content-Type: application/json\r\nContent-Length: " << request_.body->size()
          << "\r\n";
    }
    out << "\r\n" << request_.body.value_or("");
  }

  [[nodiscard]] std::unexpected<Error> Fail(const std::string& why,
                                            ErrorCode code = ErrorCode::kNetwork) const {
    return Failure(code, client_.server.Display() + ": " + why);
  }
  [[nodiscard]] std::unexpected<Error> FailTimeout() const {
    return Fail("no answer within " + FormatDuration(client_.timeout) +
                (request_.changes ? ": the change may or may not have been made" : "") +
                "; wait longer with --timeout");
  }
  /// Returns the error for a request that was sent without TLS to a server that requires TLS.
  [[nodiscard]] std::unexpected<Error> FailPlain() const {
    return Fail(
        "the server requires TLS: use " + client_.option + " https://" + client_.server.Text(),
        ErrorCode::kBadConfig);
  }

  [[nodiscard]] std::unexpected<Error> FailIncomplete(std::string_view bytes, net::Parsed parsed) {
    const bool tls = client_.server.tls;
    if (!problem_.empty()) return tls ? FailTls() : Fail(problem_);
    if (!tls && bytes.starts_with(kAlert)) return FailPlain();
    if (parsed == net::Parsed::kMore && !bytes.empty()) {
      return Fail("the connection was closed before the end of the response");
    }
    if (tls && bytes.empty()) return Fail("the server closed the connection without a response");
    return Fail(std::string("the response is not HTTP/1.1; is another program listening there") +
                (tls ? "?" : ", or does the port require TLS (https://)?"));
  }

  /// Explains a failure of TLS. The advice comes first, because `top` has one line for the message
  /// and cuts it where the screen ends.
  [[nodiscard]] std::unexpected<Error> FailTls() {
    using Cause = net::TlsSession::Cause;
    const net::TlsSession& tls = *channel_.tls();
    const std::string& problem = tls.problem();
    if (tls.plain()) {
      return Fail("the server does not support TLS: use " + client_.option + " http://" +
                      client_.server.Text(),
                  ErrorCode::kBadConfig);
    }
    switch (tls.cause()) {
      case Cause::kUnknownIssuer: {
        // The problem ends in OpenSSL's reason, such as "self-signed certificate".
        const std::string& ca_file = client_.tls.ca_file;
        const std::size_t colon = problem.rfind(": ");
        return Fail("the server's certificate is not trusted: " +
                    (ca_file.empty() ? "name the authority that signed it with --ca-file"
                                     : "no authority in " + Printable(ca_file) + " has signed it") +
                    " (" + (colon == std::string::npos ? problem : problem.substr(colon + 2)) +
                    ")");
      }
      case Cause::kOtherName:
        return Fail("the server's certificate is not for " + client_.server.CertifiedName() +
                    " but for " + ListOf(tls.PeerNames()) +
                    ": use a name of the certificate with " + client_.option);
      case Cause::kOutOfDate:
        return Fail(problem + "; the server needs a new certificate, or a clock is wrong");
      case Cause::kWantsCertificate:
        return Fail(
            "the server requires a client certificate: name yours with --cert-file and --key-file",
            ErrorCode::kBadConfig);
      case Cause::kRefusesCertificate:
        return Fail("the server does not accept the certificate of --cert-file (" + problem + ")",
                    ErrorCode::kBadConfig);
      case Cause::kOther: break;
    }
    return Fail(problem);
  }

  const HttpClient& client_;
  const HttpRequest& request_;
  const Deadline deadline_;
  const PipeSignalBlock no_signal_;
  net::BufferPool pool_;
  net::Channel channel_{pool_};
  std::string problem_;  ///< Why reading failed, if the system or a TLS alert gave a reason.
};

}  // namespace

Result<ServerAddress> ServerAddress::Parse(std::string_view text, std::uint16_t default_port) {
  const auto refuse = [&](std::string_view why = kForm) {
    return Failure(ErrorCode::kNetwork, "\"" + Printable(text) + "\" " + std::string(why));
  };
  std::string_view rest = text;
  ServerAddress address;
  address.port = default_port;
  const auto takes = [&rest](std::string_view scheme) {
    if (!EqualsIgnoreCase(rest.substr(0, scheme.size()), scheme)) return false;
    rest.remove_prefix(scheme.size());
    return true;
  };
  address.tls = takes("https://");
  if (!address.tls) (void)takes("http://");
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.contains('/')) return refuse("has a path: write only HOST:PORT");
  if (rest.empty()) return refuse();
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return refuse();
    address.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
  } else {
    // Without brackets, several colons are those of an IPv6 address without a port.
    const std::size_t colon =
        std::ranges::count(rest, ':') == 1 ? rest.find(':') : std::string_view::npos;
    address.host = colon == 0 ? "127.0.0.1" : rest.substr(0, colon);
    rest.remove_prefix(std::min(colon, rest.size()));
  }
  if (!IsHost(address.host)) return refuse();
  if (rest.empty()) return address;
  if (rest.front() != ':' || rest.size() == 1) return refuse();
  const auto port = ParseNumber<std::uint16_t>(rest.substr(1), 1);
  if (!port) return refuse("has no port between 1 and 65535");
  address.port = *port;
  return address;
}

std::string ServerAddress::Text() const {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string ServerAddress::CertifiedName() const {
  if (host.find(':') != std::string::npos) return host.substr(0, host.find('%'));
  return host.ends_with('.') ? host.substr(0, host.size() - 1) : host;
}

bool Deadline::Wait(int fd, short events) const {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(at_ - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd polled[2] = {{fd, events, 0}, {cancel_, POLLIN, 0}};
    const auto most = std::min<std::int64_t>(left.count(), 1'000'000);
    const int ready = poll(polled, 2, static_cast<int>(most));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (polled[1].revents != 0) return false;
    if (polled[0].revents != 0) return true;
  }
}

std::string RequestHead(const ServerAddress& server, std::string_view method,
                        std::string_view target, std::string_view token) {
  std::string text;
  text.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: ");
  text.append(server.Text()).append("\r\n");
  if (!token.empty()) text.append("Authorization: Bearer ").append(token).append("\r\n");
  return text;
}

Result<net::Descriptor> HttpClient::Connect(const Deadline& deadline) const {
  const net::Found found = net::LookUp(server.host, server.port, net::Lookup::kName);
  if (found.addresses.empty()) {
    return Failure(ErrorCode::kNetwork, found.problem + "; name another with " + option);
  }
  int error = 0;
  for (const net::SocketAddress& to : found.addresses) {
    net::Descriptor socket(
        ::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    error = socket ? ConnectTo(socket.get(), to, deadline) : errno;
    if (error != 0) continue;
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
  }
  return Failure(
      ErrorCode::kNetwork,
      server.Display() + ": " +
          (error == ECONNREFUSED
               ? "no server listens there: start it with `tidegate serve`, or name another with " +
                     option
           : error == ETIMEDOUT ? "no answer within " + FormatDuration(timeout)
                                : std::generic_category().message(error)));
}

Result<HttpResponse> HttpClient::Send(const HttpRequest& request) const {
  return Exchange(*this, request).Run();
}

}  // namespace tidegate::cli
