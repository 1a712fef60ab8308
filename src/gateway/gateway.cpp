// SPDX-License-Identifier: Apache-2.0
#include "gateway/gateway.hpp"

#include <chrono>
#include <cstring>
#include <ctime>
#include <unordered_set>
#include <utility>

#include "gateway/client_connection.hpp"
#include "identity/address.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {
namespace {

/// The access log is flushed after this time, or when this many bytes are waiting.
constexpr std::chrono::milliseconds kLogDelay{200};
constexpr std::size_t kLogBytes = 32u << 10;

/// Unused exchanges that Trim keeps: 1 MB.
constexpr std::size_t kKeptExchanges = 64;

}  // namespace

Gateway::Gateway(net::Reactor& reactor, DecisionPipeline& pipeline, const Options& options)
    : net::Timer(reactor.timers()),
      reactor_(reactor),
      pipeline_(pipeline),
      options_(options),
      buffers_(options.budget),
      leases_(reactor, pipeline) {
  OnSnapshot();
}

Gateway::~Gateway() { FlushLog(); }

void Gateway::OnSnapshot() {
  std::vector<std::shared_ptr<UpstreamPool>> pools;
  for (const auto& upstream : pipeline_.snapshot()->routes->upstreams()) {
    const auto kept = std::ranges::find(pools_, upstream.get(),
                                        [](const auto& pool) { return &pool->upstream(); });
    pools.push_back(kept != pools_.end()
                        ? *kept
                        : std::make_shared<UpstreamPool>(reactor_, buffers_, upstream,
                                                         options_.max_descriptor));
  }
  pools_ = std::move(pools);
}

ProxiedExchange* Gateway::TakeExchange() {
  if (free_.empty()) {
    free_.reserve(all_.size() + 1);  // So that GiveExchange cannot fail.
    all_.push_back(std::make_unique<ProxiedExchange>(*this));
    return all_.back().get();
  }
  ProxiedExchange* const exchange = free_.back();
  free_.pop_back();
  return exchange;
}

void Gateway::Trim() {
  buffers_.Trim();
  if (free_.size() <= kKeptExchanges) return;
  const std::unordered_set<const ProxiedExchange*> unused(free_.begin() + kKeptExchanges,
                                                          free_.end());
  free_.resize(kKeptExchanges);
  std::erase_if(all_, [&unused](const auto& exchange) { return unused.contains(exchange.get()); });
}

/// Ids must be unique, but need not be secret: knowing one grants no rights.
void Gateway::WriteId(char* to) noexcept {
  static constexpr auto kHexBytes = [] {
    std::array<char, 512> digits{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      digits[2 * byte] = "0123456789abcdef"[byte / 16];
      digits[2 * byte + 1] = "0123456789abcdef"[byte % 16];
    }
    return digits;
  }();
  for (Random& random : random_) {
    std::uint64_t word = random.Next();
    for (int byte = 0; byte < 8; ++byte, word >>= 8, to += 2) {
      std::memcpy(to, kHexBytes.data() + 2 * (word & 255), 2);
    }
  }
}

void Gateway::FinishLine() {
  if (lines_.size() >= kLogBytes) return FlushLog();
  if (std::exchange(flush_armed_, true)) return;
  ArmAt(reactor_.now() + kLogDelay);
}

void Gateway::NoteRefused(const ClientStream& client, const net::HttpRefusal& refusal) {
  net::OutBuffer* const line = BeginLine();
  if (line == nullptr) return;
  *line << R"({"time":")";
  WriteLogTime(*line);
  *line << R"(","client":")" << Address(client.peer().bytes).Text() << R"(","status":)"
        << refusal.status << R"(,"outcome":"refused","why":")" << refusal.reason << "\"}\n";
  FinishLine();
}

void WriteLogTime(net::OutBuffer& out) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  thread_local std::time_t second = -1;
  thread_local std::array<char, 20> text{};
  if (now.tv_sec != second) {
    second = now.tv_sec;
    std::tm parts{};
    gmtime_r(&second, &parts);
    (void)std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  }
  const auto millis = static_cast<int>(now.tv_nsec / 1'000'000);
  out << std::string_view(text.data(), 19) << '.' << static_cast<char>('0' + millis / 100)
      << static_cast<char>('0' + millis / 10 % 10) << static_cast<char>('0' + millis % 10) << 'Z';
}

net::Connection* GatewayListener::NewConnection(net::Accepted accepted) {
  return new ClientConnection(*this, std::move(accepted));
}

}  // namespace tidegate
