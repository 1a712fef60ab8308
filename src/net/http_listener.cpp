// SPDX-License-Identifier: Apache-2.0
#include "net/http_listener.hpp"

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <charconv>
#include <utility>

namespace tidegate::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::string_view kShed =
    "HTTP/1.1 503 Service Unavailable\r\n"
    "Connection: close\r\n"
    "Retry-After: 1\r\n"
    "Cache-Control: no-store\r\n"
    "Content-Type: application/problem+json\r\n"
    "Content-Length: 177\r\n"
    "\r\n"
    R"({"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",)"
    R"("title":"Service Unavailable","status":503,"detail":"too many connections: try again soon"})"
    "\n";

std::unexpected<Error> Fail(std::string message) {
  return std::unexpected(Error{ErrorCode::kNetwork, std::move(message)});
}

}  // namespace

Result<tcp::endpoint> ParseEndpoint(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto bad = [&] {
    return Fail("\"" + text + "\" is not an address to listen on: write 127.0.0.1:8081 or [::1]:8081");
  };
  if (colon == std::string::npos) return bad();
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return bad();
  }
  unsigned short port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, wrong] = std::from_chars(text.data() + colon + 1, end, port);
  if (wrong != std::errc{} || rest != end || rest == text.data() + colon + 1) return bad();
  if (host == "localhost") host = "127.0.0.1";
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error) return bad();
  return tcp::endpoint(address, port);
}

std::string EndpointText(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(endpoint.port());
}

Result<void> CheckFree(const tcp::endpoint& endpoint) {
  if (endpoint.port() == 0) return {};
  asio::io_context context;
  tcp::acceptor probe(context);
  error_code error;
  probe.open(endpoint.protocol(), error);
  if (!error) probe.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) probe.bind(endpoint, error);
  if (!error) probe.listen(1, error);
  if (!error) return {};
  std::string message = "cannot listen on " + EndpointText(endpoint) + ": " + error.message();
  if (error == asio::error::address_in_use) message += "; is another tidegate running?";
  return Fail(std::move(message));
}

Result<tcp::acceptor> Listen(asio::io_context& context, const tcp::endpoint& endpoint) {
  tcp::acceptor acceptor(context);
  error_code error;
  using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.set_option(ReusePort(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor.non_blocking(true, error);
  if (error) return Fail("cannot listen on " + EndpointText(endpoint) + ": " + error.message());
  return acceptor;
}

HttpListener::HttpListener(Reactor& reactor, tcp::acceptor acceptor, HttpHandler& handler,
                           const Options& options)
    : reactor_(reactor),
      acceptor_(std::move(acceptor)),
      backoff_(reactor.context()),
      handler_(handler),
      options_(options) {}

HttpListener::~HttpListener() {
  // The loop has ended: nobody will finish what is still under way.
  connections_.clear_and_dispose([](HttpConnection* connection) { delete connection; });
}

void HttpListener::Start() { Accept(); }

void HttpListener::Accept() {
  acceptor_.async_accept(reactor_.context(), [this](const error_code& error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (error == asio::error::no_descriptors || error == asio::error::no_memory ||
        error == asio::error::no_buffer_space) {
      // The queue keeps the clients; trying again at once would spin.
      backoff_.expires_after(std::chrono::milliseconds{50});
      backoff_.async_wait([this](const error_code& stopped) {
        if (!stopped && acceptor_.is_open()) Accept();
      });
      return;
    }
    if (!error) Adopt(std::move(socket));
    Accept();
  });
}

void HttpListener::Adopt(tcp::socket socket) {
  HttpStats::Add(stats_.accepted);
  error_code ignored;
  socket.non_blocking(true, ignored);
  if (open_ >= options_.max_connections) {
    HttpStats::Add(stats_.shed);
    socket.write_some(asio::buffer(kShed.data(), kShed.size()), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
    return;
  }
  socket.set_option(tcp::no_delay(true), ignored);
  auto* const connection = new HttpConnection(*this, std::move(socket));
  connections_.push_back(*connection);
  ++open_;
  stats_.open.store(open_, std::memory_order_relaxed);
  connection->Start();
}

void HttpListener::OnGone() {
  --open_;
  stats_.open.store(open_, std::memory_order_relaxed);
  if (draining_ && open_ == 0 && drained_) std::exchange(drained_, nullptr)();
}

void HttpListener::Drain(std::function<void()> drained) {
  draining_ = true;
  drained_ = std::move(drained);
  // Clients in the queue believe that they are connected: take them before the socket goes.
  error_code error;
  while (true) {
    tcp::socket socket(reactor_.context());
    acceptor_.accept(socket, error);
    if (error) break;
    Adopt(std::move(socket));
  }
  acceptor_.close(error);
  backoff_.cancel();
  for (auto it = connections_.begin(); it != connections_.end();) (it++)->Drain();
  if (open_ == 0 && drained_) std::exchange(drained_, nullptr)();
}

}  // namespace tidegate::net
