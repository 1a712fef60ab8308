// SPDX-License-Identifier: Apache-2.0
#include "server/worker.hpp"

#include "gateway/routing.hpp"

namespace tidegate {
namespace {

net::Deadlines::Durations DeadlinesOf(const Config::Limits& limits) {
  // A draining connection waits one second for a request that may be on its way.
  return {limits.idle_timeout, limits.header_timeout, limits.body_timeout, limits.body_timeout,
          std::chrono::seconds{1}};
}

std::unique_ptr<Guard> MakeGuard(net::Reactor& reactor, const Worker::Options& options) {
  if (options.fleet == nullptr) return nullptr;
  return std::make_unique<Guard>(reactor, options.fleet->GuardOptions(), options.store);
}

}  // namespace

Worker::Worker(const Options& options)
    : reactor(DeadlinesOf(options.config.limits)),
      metrics(reactor.timers(), {.decisions = options.config.metrics.decisions,
                                 .hot_keys = options.config.metrics.hot_keys,
                                 .at_once = options.fleet == nullptr}),
      guard(MakeGuard(reactor, options)),
      pipeline(guard ? static_cast<AsyncStore&>(*guard) : options.store, metrics, options.snapshot,
               options.overrides),
      api(pipeline, options.api_failures) {
  if (!options.config.listen.resp.off()) {
    resp = std::make_unique<RespFrontend>(pipeline, options.resp_failures, options.version,
                                          &options.budget);
  }
  if (options.snapshot->routes == nullptr) return;
  gateway =
      std::make_unique<Gateway>(reactor, pipeline,
                                Gateway::Options{.log = options.access_log,
                                                 .budget = &options.budget,
                                                 .max_descriptor = options.upstream_descriptors,
                                                 .min_progress = options.min_progress});
  if (!options.first) return;
  care = std::make_unique<UpstreamCare>(reactor, gateway->buffers());
  care->Use(options.snapshot->routes->upstreams());
}

void Worker::Use(const std::shared_ptr<const Snapshot>& snapshot) {
  pipeline.Use(snapshot);
  if (gateway != nullptr) gateway->OnSnapshot();
  if (care != nullptr) care->Use(snapshot->routes->upstreams());
}

void Worker::Trim() {
  pipeline.Trim();
  if (resp != nullptr) resp->buffers().Trim();
  if (gateway != nullptr) gateway->Trim();
}

}  // namespace tidegate
