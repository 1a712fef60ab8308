// SPDX-License-Identifier: Apache-2.0
// The server as operators see and change it: what the admin API is answered from.
#include <algorithm>
#include <utility>

#include "server/server.hpp"
#include "store/local_register.hpp"
#include "store/redis/greeting.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

using redis::Reply;

constexpr std::chrono::milliseconds kLongest = std::chrono::days{36600};

/// Of lists, so many items are shown.
constexpr std::size_t kMostItems = 100;

bool IsList(const Quota& quota) noexcept {
  return quota.algorithm() == Algorithm::kSlidingLog ||
         quota.algorithm() == Algorithm::kConcurrency;
}

/// A hash's fields and values in turn, or a sorted set's members and scores, in turn or in pairs.
void ReadFields(const Reply& reply, bool list, StoredState& to) {
  const auto add = [&](std::string_view name, std::string_view value) {
    to.fields.push_back({std::string(name), std::string(value)});
  };
  for (std::size_t i = 0; i < reply.elements.size(); ++i) {
    const Reply& element = reply.elements[i];
    if (list && element.elements.size() == 2) {
      add(element.elements[0].text, element.elements[1].text);
    } else if (i + 1 < reply.elements.size()) {
      add(element.text, reply.elements[i + 1].text);
      ++i;
    }
  }
}

}  // namespace

void Server::AddAdmin(const std::shared_ptr<const Policy>& policy) {
  Worker& first = *workers_.front();
  const auto on_table = [this](const FleetRegister::Table& table) { OnRegister(table); };
  if (first.guard) {
    auto made = std::make_unique<redis::RedisRegister>(
        first.reactor, first.guard->client(),
        redis::RedisRegister::Listener{
            .on_table = on_table,
            .on_problem =
                [](const std::string& problem) {
                  Log::Error("bans and other overrides cannot be read; those that are known stay",
                             {{"why", problem}});
                },
            .on_restored =
                [this](std::size_t entries) {
                  ++restored_;
                  Log::Warning("Redis had lost bans or other overrides; they were put back",
                               {{"count", std::to_string(entries)}});
                }});
    redis_register_ = made.get();
    register_ = std::move(made);
  } else {
    register_ = std::make_unique<LocalRegister>(clock(), on_table);
  }
  admin_desk_.reset(new AdminDesk{.store = first.store(*this),
                                  .fleet_register = *register_,
                                  .overrides = first.overrides,
                                  .policy = policy,
                                  .node = node_});
  admin_desk_->stored_as = [this](const Charge& charge) {
    std::string name;
    if (config_.store.redis) redis::KeyNames(config_.store.prefix).AppendKey(name, charge);
    return name;
  };
  admin_desk_->stored = [this](const Charge& charge, auto done) {
    ReadStored(charge, std::move(done));
  };
  admin_desk_->named = key_agreed_;
  if (first.guard) {
    admin_desk_->trouble = [&client = first.guard->client()] { return client.problem(); };
  }
  admin_desk_->shown_as = [this](std::string_view identity) {
    return admin_desk_->policy->rules->identifier().Veiled(identity);
  };
  admin_door_ = std::make_unique<AdminDoor>(
      *admin_desk_, Admission(config_.listen.admin), admin_.refusals(),
      AdminDoor::Sources{.metrics = [this] { return Metrics(); },
                         .draining = [this] { return not_ready_.load(); },
                         .status = [this] { return StatusJson(); },
                         .rules = [this] { return RulesJson(); },
                         .hot = [this](std::size_t most) { return HotJson(most); }});
}

void Server::SetReloader(const Reloader& reloader) {
  Reloader reload = [this, reloader](const std::string& by, const auto& done) {
    reloader(by, [this, done](const ReloadReport& report) {
      AfterAll([done, report] { done(report); });
    });
  };
  workers_.front()->reactor.Post([this, reload] { admin_desk_->reload = reload; });
}

void Server::AfterAll(const std::function<void()>& then) {
  const auto left = std::make_shared<std::atomic<std::size_t>>(workers_.size());
  for (auto& worker : workers_) {
    worker->reactor.Post([this, left, then] {
      if (--*left == 0) workers_.front()->reactor.Post(then);
    });
  }
}

void Server::OnRegister(const FleetRegister::Table& table) {
  std::vector<OverrideTable::Entry> entries;
  const Time now = clock().Now();
  std::size_t strange = 0;
  for (const FleetRegister::Entry& each : table.entries) {
    auto what = Override::Parse(each.value);
    // What was written by a later version is left alone.
    if (!what || Override::Field(what->rule, what->identity) != each.field) {
      ++strange;
      continue;
    }
    OverrideTable::Entry entry{.what = *std::move(what),
                               .quota = std::nullopt,
                               .since_ms = each.since_ms,
                               .expires_ms = each.expires_ms};
    if (entry.what.kind == Override::Kind::kQuota) entry.quota = *entry.what.MakeQuota();
    if (each.expires_ms) {
      // An end beyond all that can be given was written by somebody else, and is none.
      const std::int64_t left = *each.expires_ms - table.now_ms;
      if (left < kLongest.count()) entry.until = now + std::chrono::milliseconds{left};
    }
    entries.push_back(std::move(entry));
  }
  if (strange > 0) {
    Log::Warning("overrides in the store that make no sense here are ignored",
                 {{"count", std::to_string(strange)}});
  }
  const auto made = OverrideTable::Make(std::move(entries), clock());
  for (auto& worker : workers_) {
    const auto use = [&worker = *worker, made] {
      worker.overrides.Use(made);
      if (worker.guard) worker.guard->ForgetDenials();
    };
    // Here at once: who changed it finds it changed.
    if (worker == workers_.front()) {
      use();
    } else {
      worker->reactor.Post(use);
    }
  }
}

std::vector<MetricFamily> Server::AdminMetrics() const {
  using Type = MetricFamily::Type;
  MetricFamily overrides{
      "tidegate_overrides", "Overrides that this node knows, by kind.", Type::kGauge, {}};
  const OverrideTable& table = *workers_.front()->overrides.table();
  for (int i = 0; i < kOverrideKinds; ++i) {
    const auto kind = static_cast<Override::Kind>(i);
    const auto count = std::ranges::count_if(table.entries(), [&](const auto& entry) {
      const auto left = table.Left(entry);
      return entry.what.kind == kind && (!left || *left > Micros{0});
    });
    overrides.values.push_back({static_cast<double>(count), {{"kind", std::string(Name(kind))}}});
  }
  // Never heard of: since the start.
  const auto age = register_->age().value_or(
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started_));
  MetricFamily old{"tidegate_overrides_age_seconds",
                   "Since the overrides that this node knows are known to be the fleet's.",
                   Type::kGauge,
                   {{static_cast<double>(age.count()) / 1e3}}};
  MetricFamily restored{"tidegate_overrides_restored_total",
                        "Times that overrides had gone from Redis and this node put them back.",
                        Type::kCounter,
                        {{static_cast<double>(restored_)}}};
  MetricFamily refused{
      "tidegate_refused_callers_total",
      "Requests and commands of callers whom nobody knows, or who may not do that.",
      Type::kCounter,
      {}};
  for (const Doorway* const door : {&api_, &resp_, &admin_}) {
    if (door->off()) continue;
    for (std::size_t i = 0; i < Refusals::kReasons; ++i) {
      const auto why = static_cast<Refusals::Why>(i);
      refused.values.push_back(
          {static_cast<double>(door->refusals().count(why)),
           {{"door", door->name()}, {"reason", std::string(Refusals::Name(why))}}});
    }
  }
  MetricFamily changes{
      "tidegate_admin_changes_total", "Changes that operators made here.", Type::kCounter, {}};
  for (std::size_t i = 0; i < kAdminActions; ++i) {
    changes.values.push_back({static_cast<double>(admin_desk_->counters[i].load()),
                              {{"action", std::string(Name(static_cast<AdminAction>(i)))}}});
  }
  return {std::move(overrides), std::move(old), std::move(restored), std::move(refused),
          std::move(changes)};
}

void Server::ReadStored(const Charge& charge, std::function<void(Result<StoredState>)> done) {
  Worker& first = *workers_.front();
  if (!first.guard) {
    auto inspection = store_->Inspect(charge);
    if (!inspection) return done(std::unexpected(std::move(inspection.error())));
    if (IsList(*charge.quota) && inspection->state.size() > kMostItems) {
      inspection->state.resize(kMostItems);
    }
    return done(StoredState{inspection->tracked, std::move(inspection->state)});
  }
  const bool list = IsList(*charge.quota);
  const std::string key = admin_desk_->stored_as(charge);
  std::string command;
  if (list) {
    const std::string last = std::to_string(kMostItems - 1);  // A range has its last item in it.
    redis::AppendCommand(command, {"ZRANGE", key, "0", last, "WITHSCORES"});
  } else {
    redis::AppendCommand(command, {"HGETALL", key});
  }
  first.guard->client().Run(
      redis::KeyNames::SlotOf(charge.identity), command,
      [list, done = std::move(done)](const Reply* reply) {
        if (reply == nullptr || reply->is(Reply::Type::kError)) {
          return done(std::unexpected(Error{
              ErrorCode::kNetwork,
              "Redis does not tell what stands there" +
                  (reply == nullptr ? std::string()
                                    : ": `" + std::string(reply->text.substr(0, 200)) + "`")}));
        }
        StoredState state;
        ReadFields(*reply, list, state);
        state.tracked = !state.fields.empty();
        done(std::move(state));
      });
}

}  // namespace tidegate
