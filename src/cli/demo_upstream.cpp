// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_upstream.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <stdexcept>
#include <thread>
#include <utility>

#include "net/http_listener.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"

namespace tidegate::cli {
namespace {

using std::chrono::seconds;

constexpr seconds kJob{3};
constexpr std::string_view kTokens = "350";

/// Answers what is late, too.
class DemoHandler final : public net::HttpHandler, private net::Timer {
 public:
  explicit DemoHandler(net::Timers& timers) : net::Timer(timers) {}

  void Handle(net::HttpExchange& exchange) noexcept override {
    if (exchange.head().path != "/jobs") return Answer(exchange);
    jobs_.emplace_back(Clock::now() + kJob, &exchange);
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
    if (head.path == "/chat") out << "X-Tokens-Used: " << kTokens << "\r\n";
    exchange.End("application/json", body.view());
  }

  std::deque<std::pair<Clock::time_point, net::HttpExchange*>> jobs_;
};

net::Descriptor ListenAnywhere() {
  auto socket = net::Listen(*net::Endpoint::Parse("127.0.0.1:0"));
  if (!socket) throw std::runtime_error(socket.error().message);
  return std::move(*socket);
}

net::Deadlines::Durations PatienceOfUpstream() {
  net::Deadlines::Durations durations;
  durations.fill(seconds{75});
  return durations;
}

}  // namespace

struct DemoUpstream::Impl {
  Impl() : reactor(PatienceOfUpstream()), handler(reactor.timers()), socket(ListenAnywhere()) {
    endpoint = net::Endpoint::OfSocket(socket.get());
    listener.emplace(reactor, std::move(socket), handler,
                     net::Listener::Options{.limits = {}, .open = &open});
    listener->Start();
  }
  ~Impl() {
    reactor.Stop();
    if (thread.joinable()) thread.join();
  }

  std::atomic<std::size_t> open{0};
  net::Reactor reactor;
  DemoHandler handler;
  net::Descriptor socket;
  net::Endpoint endpoint;
  std::optional<net::HttpListener> listener;
  std::thread thread;
};

DemoUpstream::DemoUpstream() : impl_(std::make_unique<Impl>()) {}
DemoUpstream::~DemoUpstream() = default;

void DemoUpstream::Start() {
  impl_->thread = std::thread([&reactor = impl_->reactor] { reactor.Run(std::nullopt); });
}

std::string DemoUpstream::url() const { return "http://" + impl_->endpoint.Text(); }

}  // namespace tidegate::cli
