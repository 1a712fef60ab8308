// SPDX-License-Identifier: Apache-2.0
// Measures rule matching and identities: the cost of a request before a store is called. The result
// is the ratio of 10,000 rules to 10. Requests use the rules in a scattered order, so that the
// larger index has its cache misses.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory_resource>
#include <string>
#include <vector>

#include "identity/identity.hpp"
#include "rules/match_index.hpp"

namespace tidegate {
namespace {

/// A request in the cache, as a frontend has just read it. It is changed to match one rule after
/// another. The index is not in the cache, as for a rule that is rarely used.
class Request {
 public:
  Request() {
    view.method = "GET";
    view.host = "api.example.com";
    view.path = "/v1/users/42";
    view.headers = fields_;
    view.has_client = true;
    view.client = Address::Parse("203.0.113.7").value();
  }

  /// Writes `prefix`, the number and `suffix` to the buffer and returns the text.
  std::string_view Write(std::string_view prefix, std::size_t number, std::string_view suffix) {
    char* end = std::copy(prefix.begin(), prefix.end(), text_.data());
    end = std::to_chars(end, end + 20, number).ptr;
    end = std::copy(suffix.begin(), suffix.end(), end);
    return {text_.data(), static_cast<std::size_t>(end - text_.data())};
  }
  void set_key(std::string_view key) { fields_[6].value = key; }

  RequestView view;

 private:
  std::array<HeaderField, 8> fields_ = {{{"Host", "api.example.com"},
                                         {"User-Agent", "curl/7.88.1"},
                                         {"Accept", "*/*"},
                                         {"Accept-Encoding", "gzip, deflate"},
                                         {"Accept-Language", "en"},
                                         {"X-Request-Id", "0123456789abcdef"},
                                         {"X-Api-Key", "none"},
                                         {"Connection", "keep-alive"}}};
  std::array<char, 128> text_{};
};

/// Rules and requests of one kind. `i` is the number of a rule, or of the request that matches it.
struct Kind {
  const char* name;
  void (*spec)(MatchSpec& spec, std::size_t i);
  void (*request)(Request& request, std::size_t i);
};

/// Returns a number with five digits for every rule, so that writing it costs the same for few
/// rules and for many.
std::size_t Wide(std::size_t i) { return 10'000 + i; }
std::string Number(std::size_t i) { return std::to_string(i); }

const std::array<Kind, 4> kKinds = {{
    {"hosts",
     [](MatchSpec& spec, std::size_t i) {
       spec.hosts = {"tenant-" + Number(Wide(i)) + ".example.com"};
       spec.paths = {"/v1/**"};
     },
     [](Request& request, std::size_t i) {
       request.view.host = request.Write("tenant-", Wide(i), ".example.com");
     }},
    {"paths",
     [](MatchSpec& spec, std::size_t i) {
       spec.hosts = {"api.example.com"};
       spec.paths = {"/v1/resource-" + Number(Wide(i)) + "/:id"};
     },
     [](Request& request, std::size_t i) {
       request.view.path = request.Write("/v1/resource-", Wide(i), "/42");
     }},
    {"headers",
     [](MatchSpec& spec, std::size_t i) {
       spec.paths = {"/v1/**"};
       spec.headers = {{"x-api-key", "key-" + Number(Wide(i))}};
     },
     [](Request& request, std::size_t i) { request.set_key(request.Write("key-", Wide(i), "")); }},
    {"networks",
     [](MatchSpec& spec, std::size_t i) {
       spec.paths = {"/v1/**"};
       const std::string base = "10." + Number(i / 256) + "." + Number(i % 256) + ".0/24";
       spec.client_ips = {Network::Parse(base).value()};
     },
     [](Request& request, std::size_t i) {
       request.Write("", Wide(i), "");  // All kinds do the same work before the lookup.
       Address::Bytes bytes{};
       std::ranges::copy(request.view.client.bytes(), bytes.begin());
       bytes[12] = 10;
       bytes[13] = static_cast<std::uint8_t>(i / 256);
       bytes[14] = static_cast<std::uint8_t>(i % 256);
       request.view.client = Address(bytes);
     }},
}};

void Match(benchmark::State& state, const Kind& kind, std::size_t rules) {
  std::vector<MatchSpec> specs(rules);
  for (std::size_t i = 0; i < rules; ++i) kind.spec(specs[i], i);
  const MatchIndex index(specs);
  Request request;
  std::array<std::uint32_t, 16> found{};
  std::size_t i = 0;
  for (auto _ : state) {
    i = (i + 7919) % rules;
    kind.request(request, i);
    if (index.Find(request.view, found) != 1 || found[0] != i) state.SkipWithError("wrong match");
  }
}

void Build(benchmark::State& state, const Kind& kind, std::size_t rules) {
  std::vector<MatchSpec> specs(rules);
  for (std::size_t i = 0; i < rules; ++i) kind.spec(specs[i], i);
  for (auto _ : state) benchmark::DoNotOptimize(MatchIndex(specs));
}

void Hash(benchmark::State& state) {
  const KeyedHash hash("0123456789abcdef0123456789abcdef");
  std::string value(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) {
    ++value[0];
    benchmark::DoNotOptimize(hash(value));
  }
}

void FromRequest(benchmark::State& state, const Per& per) {
  const Identifier identifier({.hmac_key = "0123456789abcdef"});
  Request request;
  request.set_key("0123456789abcdefghij");
  std::array<std::byte, 1024> room;
  for (auto _ : state) {
    std::pmr::monotonic_buffer_resource memory(room.data(), room.size());
    benchmark::DoNotOptimize(identifier.FromRequest(per, request.view, memory));
  }
}

}  // namespace
}  // namespace tidegate

int main(int argc, char** argv) {
  using namespace tidegate;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const Kind& kind : kKinds) {
    for (const std::size_t rules : {std::size_t{10}, std::size_t{10'000}}) {
      const std::string name = std::string("match/") + kind.name + "/" + std::to_string(rules);
      benchmark::RegisterBenchmark(
          name.c_str(), [&kind, rules](benchmark::State& state) { Match(state, kind, rules); });
    }
  }
  for (const Kind& kind : kKinds) {
    benchmark::RegisterBenchmark((std::string("build/") + kind.name + "/10000").c_str(),
                                 [&kind](benchmark::State& state) { Build(state, kind, 10'000); })
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("keyed_hash", Hash)->Arg(20)->Arg(200);
  benchmark::RegisterBenchmark("identity/header", FromRequest,
                               Per{{{{Source::Kind::kHeader, "x-api-key"}}}});
  benchmark::RegisterBenchmark("identity/client_ip", FromRequest,
                               Per{{{{Source::Kind::kClientIp, {}}}}});
  benchmark::RunSpecifiedBenchmarks();
}
