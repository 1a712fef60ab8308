// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot_compiler.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "frontends/access_policy.hpp"
#include "gateway/routing.hpp"
#include "identity/jwt.hpp"

namespace tidegate {
namespace {

Problem ErrorAt(std::string where, std::string message) {
  return {Problem::Severity::kError, {}, std::move(where), std::move(message)};
}

/// Returns the identifier for `identity`, which may differ from config.identity. `key` is the HMAC
/// key if `identity` has none. Returns nullptr if it added a problem.
std::shared_ptr<const Identifier> MakeIdentifier(const Config& config,
                                                 const Config::Identity& identity,
                                                 const std::string& key, Problems& problems) {
  Identifier::Options options{
      .hmac_key = identity.hmac_key.empty() ? key : identity.hmac_key,
      .ipv6_prefix = config.client_ip.ipv6_prefix,
      .ignore_path_case = config.paths.ignore_case,
      .reject_duplicate_cookies =
          identity.duplicate_cookies == Config::Identity::DuplicateCookies::kReject,
      .jwt = nullptr};
  if (const auto& jwt = identity.jwt) {
    auto verifier = JwtVerifier::Make(*jwt);
    if (!verifier) {
      problems.push_back(ErrorAt("identity.jwt", verifier.error().message));
      return nullptr;
    }
    options.jwt = *verifier;
  }
  return std::make_shared<const Identifier>(std::move(options));
}

Problem ErrorAt(const ListenSection& entry, std::string message) {
  return ErrorAt("listen." + std::string(entry.name), std::move(message));
}

/// Returns the specification that a listener started with `spec` has after a reload to `now`. Only
/// its certificates, and the client certificates that it requires, change without a restart.
ListenSpec Effective(const ListenSpec& spec, const ListenSpec& now) {
  ListenSpec effective = spec;
  if (effective.tls && now.tls) effective.tls = now.tls;
  return effective;
}

/// Returns true if a listener started with `spec` can change to `now` without a restart.
bool Fits(const ListenSpec& spec, const ListenSpec& now) { return Effective(spec, now) == now; }

}  // namespace

void SnapshotCompiler::Check(const Config& config, Problems& problems) {
  // Any HMAC key will do, because nothing is decided with these rules.
  const auto identifier = MakeIdentifier(config, config.identity, std::string(64, '0'), problems);
  if (identifier != nullptr) (void)RuleSet::Compile(config.rule_set(), identifier, problems);
}

std::shared_ptr<Snapshot> SnapshotCompiler::CompileRules(const Config& config, Problems& problems) {
  Config::Identity identity = config.identity;
  // A node with another HMAC key than the rest of the fleet would have its own buckets and so
  // multiply every limit. With Redis a new HMAC key therefore needs a restart.
  if (started_with_.store.redis) identity.hmac_key = started_with_.identity.hmac_key;
  auto identifier = MakeIdentifier(config, identity, hmac_key_, problems);
  if (identifier == nullptr) return nullptr;
  auto rules = RuleSet::Compile(config.rule_set(), std::move(identifier), problems);
  if (rules == nullptr) return nullptr;
  auto snapshot = std::make_shared<Snapshot>();
  for (const Rule& rule : rules->rules()) {
    snapshot->slots.push_back(rule_slots_.SlotOf(rule.id));
  }
  snapshot->rules = std::move(rules);
  snapshot->responses = config.responses;
  snapshot->api = config.api;
  snapshot->resp = config.resp;
  snapshot->key_names = config.metrics.key_names;
  auto access = std::make_shared<AccessControl>(
      AccessControl{.tokens = Tokens(config.access.tokens),
                    .certificates = Certificates(config.access.certificates),
                    .policies = {},
                    .clients = snapshot->rules->client_policy()});
  for (std::size_t i = 0; i < kListeners; ++i) {
    const auto spec = kListenSections[i].spec;
    access->policies[i] = AccessPolicy(Effective(started_with_.listen.*spec, config.listen.*spec));
  }
  snapshot->access = std::move(access);
  return snapshot;
}

std::shared_ptr<const Snapshot> SnapshotCompiler::Compile(const Config& config,
                                                          Problems& problems) {
  auto snapshot = CompileRules(config, problems);
  const bool gateway = !started_with_.listen.gateway.off();
  if (snapshot != nullptr && gateway) {
    const Routing* const before = current_ == nullptr ? nullptr : current_->routes.get();
    snapshot->routes = Routing::Make(config, before, route_slots_, upstream_slots_, problems);
  }
  // Certificates are read even after other errors, so that one reload reports all problems.
  auto tls = CompileTls(config, problems);
  if (snapshot == nullptr || !tls || (gateway && snapshot->routes == nullptr)) return nullptr;
  snapshot->tls = *std::move(tls);
  if (current_ != nullptr && !KeepsAuthentication(config, *snapshot, problems)) return nullptr;
  in_force_ = config;
  current_ = snapshot;
  return snapshot;
}

std::shared_ptr<const Snapshot> SnapshotCompiler::CompileWithKey(const std::string& hmac_key) {
  hmac_key_ = hmac_key;
  Problems ignored;  // They were reported when this configuration was first compiled.
  const Config config = in_force_;
  return Compile(config, ignored);
}

std::optional<Snapshot::Tls> SnapshotCompiler::CompileTls(const Config& config,
                                                          Problems& problems) const {
  Snapshot::Tls tls;
  for (std::size_t i = 0; i < kListeners; ++i) {
    const ListenSpec& started = started_with_.listen.*kListenSections[i].spec;
    const ListenSpec& now = config.listen.*kListenSections[i].spec;
    // Turning the TLS of a listener on or off needs a restart.
    if (started.off() || !started.tls || !now.tls) continue;
    using Protocol = net::TlsClient::Protocol;
    const bool http = static_cast<ListenerId>(i) != ListenerId::kResp;
    auto made = net::TlsServer::Make(*now.tls, http ? Protocol::kHttp1 : Protocol::kNone);
    if (!made) {
      problems.push_back(ErrorAt(kListenSections[i], "tls: " + made.error().message));
      return std::nullopt;
    }
    tls[i] = *std::move(made);
  }
  return tls;
}

/// A reload changes tokens at once, but their replacement, such as a client CA, may need a restart.
/// Until then the listener would require no authentication.
bool SnapshotCompiler::KeepsAuthentication(const Config& config, const Snapshot& snapshot,
                                           Problems& problems) const {
  bool kept = true;
  for (const ListenerId id : {ListenerId::kApi, ListenerId::kAdmin, ListenerId::kResp}) {
    const ListenSection& entry = kListenSections[static_cast<std::size_t>(id)];
    const ListenSpec& started = started_with_.listen.*entry.spec;
    // A listener without need of a restart changes at once, even if that removes authentication.
    if (started.off() || Fits(started, config.listen.*entry.spec) ||
        !current_->access->of(id).Required(current_->access->tokens) ||
        snapshot.access->of(id).Required(snapshot.access->tokens)) {
      continue;
    }
    problems.push_back(
        ErrorAt(entry, "this reload would leave listener `" + std::string(entry.name) +
                           "` without authentication: its tokens or client certificates were "
                           "removed, and the replacement needs a restart"));
    kept = false;
  }
  return kept;
}

std::vector<std::string> SnapshotCompiler::NeedsRestart(const Config& config) const {
  std::vector<std::string> changed;
  const bool listeners_fit = std::ranges::all_of(kListenSections, [&](const ListenSection& entry) {
    return Fits(started_with_.listen.*entry.spec, config.listen.*entry.spec);
  });
  if (!listeners_fit) changed.emplace_back("listen");
  Config::Store store = config.store;
  store.on_failure = started_with_.store.on_failure;  // A part of the rules needs no restart.
  if (store != started_with_.store) changed.emplace_back("store");
  if (config.limits != started_with_.limits) changed.emplace_back("limits");
  if (config.access_log != started_with_.access_log) changed.emplace_back("access_log");
  Config::Metrics metrics = config.metrics;
  metrics.key_names = started_with_.metrics.key_names;  // It changes without a restart.
  if (metrics != started_with_.metrics) changed.emplace_back("metrics");
  if (config.process != started_with_.process) changed.emplace_back("process");
  if (started_with_.store.redis && config.identity.hmac_key != started_with_.identity.hmac_key) {
    changed.emplace_back("identity.hmac_key");
  }
  return changed;
}

}  // namespace tidegate
