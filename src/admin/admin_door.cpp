// SPDX-License-Identifier: Apache-2.0
#include "admin/admin_door.hpp"

#include <array>
#include <new>
#include <utility>

#include "doors/http_admission.hpp"

namespace tidegate {
namespace {

using net::AnswerProblem;
using net::HttpExchange;

/// A look at a key that nobody is counted by: it takes the way of every question to the store and
/// back.
struct Probe : Call {
  Probe(HttpExchange& of, bool& ready) : exchange(of), was_ready(ready) {}

  HttpExchange& exchange;
  bool& was_ready;
  Quota quota = Quota::Make({.limit = 1}).value();
  std::array<Charge, 1> probes{{{.rule = "readiness",
                                 .identity = "probe",
                                 .quota = &quota,
                                 .on_failure = OnFailure::kClosed}}};
  std::array<Decision, 1> looks;
};

void AnswerText(HttpExchange& exchange, std::string_view text) {
  exchange.Begin(200) << "Cache-Control: no-store\r\n";
  exchange.End("text/plain; charset=utf-8", text);
}

}  // namespace

AdminDoor::AdminDoor(AsyncStore& store, const Admission& admission,
                     std::shared_ptr<const Tokens> tokens, Sources sources)
    : store_(store),
      admission_(admission),
      tokens_(std::move(tokens)),
      sources_(std::move(sources)) {}

void AdminDoor::Handle(HttpExchange& exchange) noexcept {
  const net::HttpHead& head = exchange.head();
  const bool known = head.path == "/healthz" || head.path == "/readyz" || head.path == "/metrics";
  if (!known) {
    return AnswerProblem(exchange, 404, "there is nothing here: try /healthz, /readyz or /metrics");
  }
  if (head.method != "GET" && head.method != "HEAD") {
    return AnswerProblem(exchange, 405, "this can be read with GET", {}, "Allow: GET, HEAD\r\n");
  }
  if (head.path == "/healthz") return AnswerText(exchange, "ok\n");
  if (head.path == "/readyz") return AnswerReady(exchange);
  if (!Admit(exchange, admission_, *tokens_, TokenFields::kOwn, Rights::kAsk)) return;
  const std::string text = sources_.metrics();
  exchange.Begin(200) << "Cache-Control: no-store\r\n";
  exchange.End("text/plain; version=0.0.4; charset=utf-8", text);
}

void AdminDoor::AnswerReady(HttpExchange& exchange) {
  if (sources_.draining()) return AnswerProblem(exchange, 503, "shutting down");
  auto* const probe =
      new (exchange.memory().allocate(sizeof(Probe), alignof(Probe))) Probe(exchange, was_ready_);
  probe->kind = Call::Kind::kPeek;
  probe->charges = probe->probes;
  probe->decisions = probe->looks;
  probe->finished = [](Call& call) noexcept {
    Probe& mine = static_cast<Probe&>(call);
    HttpExchange& of = mine.exchange;
    const std::optional<Error> error = std::move(mine.error);
    const bool answered = !error && mine.looks[0].rung == Rung::kStore;
    if (answered) mine.was_ready = true;
    const bool was_ready = mine.was_ready;
    mine.~Probe();
    if (answered) return AnswerText(of, "ready\n");
    // Failure policies are there for an outage: a fleet that calls itself unready then would turn
    // every `open` into closed.
    if (was_ready) return AnswerText(of, "ready, but the store does not answer\n");
    AnswerProblem(
        of, 503,
        error ? "the store does not answer: " + error->message : "the store has not answered yet");
  };
  store_.Start(*probe);
}

}  // namespace tidegate
