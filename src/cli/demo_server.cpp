// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <expected>
#include <iostream>
#include <span>
#include <stdexcept>
#include <thread>

#include "base/failure.hpp"
#include "cli/http_client.hpp"
#include "net/endpoint.hpp"
#include "net/http_listener.hpp"
#include "net/listener.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "server/server.hpp"

namespace tidegate::cli {

namespace {

struct DemoListener {
  ListenerId id;
  std::string_view name;
  std::string_view option;
  ListenSpec& spec;
  std::optional<std::uint16_t> port;
};

/// Returns an address such as `127.0.0.1:8080` with another port.
std::string WithPort(const std::string& address, std::uint16_t port) {
  return address.substr(0, address.rfind(':') + 1) + std::to_string(port);
}

Result<void> CheckGiven(std::span<const DemoListener> all, const DemoListener& one) {
  const auto same = std::ranges::find_if(all, [&](const DemoListener& other) {
    return &other != &one && other.port && *other.port != 0 && other.port == one.port;
  });
  if (same != all.end()) {
    return Failure(ErrorCode::kBadConfig, std::string(one.option) + " and " +
                                              std::string(same->option) + " are both " +
                                              std::to_string(*one.port) + ": name two ports");
  }
  const auto endpoint = net::Endpoint::Parse(WithPort(one.spec.address, *one.port));
  if (!endpoint) return std::unexpected(endpoint.error());
  if (const auto free = net::CheckFree(*endpoint); !free) {
    const std::string& message = free.error().message;
    return Failure(free.error().code, message.substr(0, message.find(';')) +
                                          "; name another port with " + std::string(one.option) +
                                          ", or leave the option out to use a free one");
  }
  return {};
}

using std::chrono::seconds;

constexpr seconds kJobTime{3};

/// Answers with the request that it received; for /jobs three seconds later.
class DemoHandler final : public net::HttpHandler, private net::Timer {
 public:
  explicit DemoHandler(net::Timers& timers) : net::Timer(timers) {}

  void Handle(net::HttpExchange& exchange) noexcept override {
    if (exchange.head().path != "/jobs") return Answer(exchange);
    jobs_.emplace_back(Clock::now() + kJobTime, &exchange);
    ArmAt(jobs_.front().first);
  }

 private:
  void OnTimer(Clock::time_point now) override {
    while (!jobs_.empty() && jobs_.front().first <= now) {
      net::HttpExchange& exchange = *jobs_.front().second;
      jobs_.pop_front();
      Answer(exchange);
    }
    if (!jobs_.empty()) ArmAt(jobs_.front().first);
  }

  static void Answer(net::HttpExchange& exchange) {
    const net::HttpHead& head = exchange.head();
    net::OutBuffer body;
    body << R"({"hello":"from the demo's upstream","method":")" << head.method << R"(","path":")";
    net::WriteJsonText(body, head.path);
    body << R"(","headers":{)";
    bool first = true;
    for (const net::HttpField& field : head.all()) {
      body << (std::exchange(first, false) ? "\"" : ",\"");
      net::WriteJsonText(body, field.name);
      body << R"(":")";
      net::WriteJsonText(body, field.value);
      body << '"';
    }
    body << "}}\n";
    net::OutBuffer& out = exchange.Begin(200);
    if (head.path == "/chat") out << "X-Tokens-Used: 350\r\n";
    exchange.End("application/json", body.view());
  }

  std::deque<std::pair<Clock::time_point, net::HttpExchange*>> jobs_;
};

class DemoServer final : public DemoUpstream {
 public:
  DemoServer() : handler_(reactor_.timers()) {
    auto socket = net::Listen(*net::Endpoint::Parse("127.0.0.1:0"));
    if (!socket) throw std::runtime_error(socket.error().message);
    endpoint_ = net::Endpoint::OfSocket(socket->get());
    listener_.emplace(reactor_, *std::move(socket), handler_,
                      net::Listener::Options{.limits = {}, .open = &open_});
    listener_->Start();
  }
  ~DemoServer() override {
    reactor_.Stop();
    if (thread_.joinable()) thread_.join();
  }

  void Start() override {
    thread_ = std::thread([this] { reactor_.Run(std::nullopt); });
  }
  [[nodiscard]] std::string url() const override { return "http://" + endpoint_.Text(); }

 private:
  std::atomic<std::size_t> open_{0};
  net::Reactor reactor_{{seconds{75}, seconds{75}, seconds{75}, seconds{75}, seconds{75}}};
  DemoHandler handler_;
  net::Endpoint endpoint_;
  std::optional<net::HttpListener> listener_;
  std::thread thread_;
};

}  // namespace

Result<std::vector<MovedListener>> ChooseDemoPorts(const DemoPorts& ports, Config::Listen& listen) {
  const std::array<DemoListener, 4> all = {
      {{ListenerId::kGateway, "gateway", "--port", listen.gateway, ports.gateway},
       {ListenerId::kApi, "api", "--api-port", listen.api, ports.api},
       {ListenerId::kResp, "resp", "--resp-port", listen.resp, ports.resp},
       {ListenerId::kAdmin, "admin", "--admin-port", listen.admin, ports.admin}}};
  std::vector<MovedListener> moved;
  for (const DemoListener& one : all) {
    if (!one.port) continue;
    if (auto good = CheckGiven(all, one); !good) return std::unexpected(good.error());
  }
  for (const DemoListener& one : all) {
    if (one.port) {
      one.spec.address = WithPort(one.spec.address, *one.port);
      continue;
    }
    const auto usual = net::Endpoint::Parse(one.spec.address);
    if (!usual) return std::unexpected(usual.error());
    const bool given_away = std::ranges::any_of(
        all, [&](const DemoListener& other) { return other.port == usual->port(); });
    if (!given_away && net::CheckFree(*usual)) continue;
    moved.push_back({one.id, std::string(one.name), one.spec.address, std::string(one.option)});
    one.spec.address = WithPort(one.spec.address, 0);
  }
  return moved;
}

std::unique_ptr<DemoUpstream> DemoUpstream::Make() { return std::make_unique<DemoServer>(); }

void PrintDemoHelp(const Server& server) {
  std::string text = R"(
Try it in another terminal. The gateway forwards to a small server that answers with the request it
received. Five requests pass, and one more every two seconds:

  for i in 1 2 3 4 5 6; do
    curl -si {gateway}/demo/hello | grep -E '^(HTTP|RateLimit:|Retry-After)'
  done

    five times  HTTP/1.1 200 OK   RateLimit: "demo";r=4;t=2  ... down to r=0
    then        HTTP/1.1 429 Too Many Requests   Retry-After: 2

Two at a time; each takes three seconds, so the third is denied at once:

  for i in 1 2 3; do curl -s -o /dev/null -w '%{http_code}\n' {gateway}/jobs & done; wait

    prints      429, then 200 and 200

A cost that is known only from the response (350 of 1000 tokens a minute): three pass, then 429:

  for i in 1 2 3 4; do curl -s -o /dev/null -w '%{http_code}\n' {gateway}/chat; done

Request decisions without the gateway. This is the bucket of -H 'x-api-key: alice' above:

  curl -s --json '{"rule":"demo","identity":"alice"}' {api}/v1/decide

    prints      {"allowed":true,"rule":"demo","limit":5,"remaining":4, ...

Bring your own quota, without any rule:

  curl -s --json '{"key":"job-42","limit":"10/m"}' {api}/v1/decide

The same with any Redis client, on a port of its own:

  redis-cli -p {resp_port} TG.DECIDE demo alice
  redis-cli -p {resp_port} CL.THROTTLE job-42 15 30 60

    print       0 (allowed), limit, remaining, seconds to wait (-1: none), seconds until full

Watch it in another terminal, explain a decision, ban a key for a minute, and see that it is denied:

  tidegate top{to_admin}         (here: build/release/tidegate, if ./dev built it)
  tidegate explain --path /demo/hello --client-ip 127.0.0.1{to_admin}
  tidegate ban demo alice --for 1m --reason "to try it"{to_admin}
  tidegate decide demo alice{to_api}

All endpoints: {api}/openapi.json   Metrics: http://{admin}/metrics
Below: one line of JSON for each request that passes the gateway.

)";
  const std::pair<std::string_view, std::string> values[] = {
      {"{gateway}", "http://" + server.gateway().Text()},
      {"{api}", "http://" + server.api().Text()},
      {"{admin}", server.admin().Text()},
      {"{resp_port}", std::to_string(server.resp().port())},
      // Commands find the usual ports by themselves.
      {"{to_admin}",
       server.admin().port() == kAdminPort ? "" : " --admin " + server.admin().Text()},
      {"{to_api}", server.api().port() == kApiPort ? "" : " --server " + server.api().Text()}};
  for (const auto& [name, value] : values) {
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;) {
      text.replace(at, name.size(), value);
    }
  }
  std::cout << text << std::flush;
}

}  // namespace tidegate::cli
