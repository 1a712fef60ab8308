// SPDX-License-Identifier: Apache-2.0
#include "gateway/gateway.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>
#include <unordered_set>
#include <utility>

#include "gateway/client_connection.hpp"
#include "net/http_exchange.hpp"
#include "net/http_listener.hpp"
#include "rules/address.hpp"

namespace tidegate {
namespace {

/// The access log is flushed after this time, or when this many bytes are waiting.
constexpr std::chrono::milliseconds kLogDelay{200};
constexpr std::size_t kLogBytes = 32u << 10;

/// Unused passages that Trim keeps: 1 MB.
constexpr std::size_t kKeptPassages = 64;

}  // namespace

Gateway::Gateway(net::Reactor& reactor, DecisionPipeline& pipeline, const Options& options)
    : net::Timer(reactor.timers()),
      reactor_(reactor),
      pipeline_(pipeline),
      options_(options),
      buffers_(options.budget),
      leases_(reactor, pipeline) {
  std::random_device random;
  for (auto& word : random_) word = (std::uint64_t{random()} << 32) | random();
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

Passage* Gateway::TakePassage() {
  if (free_.empty()) {
    free_.reserve(all_.size() + 1);  // So that GivePassage cannot fail.
    all_.push_back(std::make_unique<Passage>(*this));
    return all_.back().get();
  }
  Passage* const passage = free_.back();
  free_.pop_back();
  return passage;
}

void Gateway::GivePassage(Passage* passage) noexcept { free_.push_back(passage); }

void Gateway::Trim() {
  buffers_.Trim();
  if (free_.size() <= kKeptPassages) return;
  const std::unordered_set<const Passage*> unused(free_.begin() + kKeptPassages, free_.end());
  free_.resize(kKeptPassages);
  std::erase_if(all_, [&unused](const auto& passage) { return unused.contains(passage.get()); });
}

// xorshift128+: ids must be unique, but need not be secret, because knowing one grants no rights.
std::uint64_t Gateway::Random() noexcept {
  std::uint64_t a = random_[0];
  const std::uint64_t b = random_[1];
  random_[0] = b;
  a ^= a << 23;
  random_[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
  return random_[1] + b;
}

void Gateway::WriteId(char* to) noexcept {
  static constexpr char kHex[] = "0123456789abcdef";
  for (int half = 0; half < 2; ++half) {
    std::uint64_t word = Random();
    for (int i = 0; i < 16; ++i, word >>= 4) *to++ = kHex[word & 15];
  }
}

// --- The access log -------------------------------------------------------------

net::OutBuffer* Gateway::BeginLine() { return options_.log == nullptr ? nullptr : &lines_; }

void Gateway::FinishLine() {
  if (lines_.size() >= kLogBytes) return FlushLog();
  if (std::exchange(flush_armed_, true)) return;
  ArmAt(reactor_.now() + kLogDelay);
}

void Gateway::FlushLog() {
  if (options_.log != nullptr) options_.log->Write(lines_.view());
  lines_.Clear();
  flush_armed_ = false;
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

std::string_view GatewayListener::shed_text() const noexcept { return net::kHttpShed; }
std::string_view GatewayListener::needs_tls_text() const noexcept { return net::kHttpNeedsTls; }

}  // namespace tidegate
