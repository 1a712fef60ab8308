// SPDX-License-Identifier: Apache-2.0
// Runs the batch script on a real Redis with random histories of keys, and compares every number of
// the replies and every stored field with a model built from src/core.
#include <gtest/gtest.h>

#include <iostream>
#include <optional>
#include <sstream>

#include "core/quota_scale.hpp"
#include "property/history.hpp"
#include "property/quotas.hpp"
#include "property/source.hpp"
#include "redis/model.hpp"
#include "redis/redis_server.hpp"
#include "redis/stored_text.hpp"
#include "store/redis/scripts.hpp"

namespace tidegate::redis_test {
namespace {

using property::Source;

/// The script and Redis use different clocks here, because the clock of Redis cannot be set. Every
/// TTL is written one hour longer and read one hour shorter, so that real time never expires a key.
constexpr std::int64_t kLongerMs = 3'600'000;

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  if (at == std::string::npos || text.find(what, at + 1) != std::string::npos) {
    throw std::runtime_error("the script does not have exactly one '" + what + "'");
  }
  return text.replace(at, what.size(), by);
}

/// Returns the batch script, changed to take the time from its last two arguments.
std::string ScriptWithClock() {
  std::string script(redis::ApplyScript());
  script = Replaced(script, "\nlocal clock = redis.call('TIME')\n",
                    "\nlocal clock = {ARGV[#ARGV - 1], ARGV[#ARGV]}\n");
  script = Replaced(script, "return string.format('%d', ms)",
                    "return string.format('%d', ms + " + std::to_string(kLongerMs) + ")");
  return Replaced(script, "read('PTTL', KEYS[k])",
                  "read('PTTL', KEYS[k]) - " + std::to_string(kLongerMs));
}

std::string ToString(const Batch& batch) {
  std::ostringstream text;
  for (const Quota& quota : batch.quotas) text << "  quota " << property::ToString(quota) << "\n";
  for (const Entry& entry : batch.entries) {
    constexpr const char* kOps[] = {"",       "apply", "look",  "debit",
                                    "refund", "reset", "renew", "release"};
    text << "  " << kOps[entry.op] << " x " << entry.count;
    for (const Item& item : entry.items) {
      text << " [" << batch.keys[item.key] << " quota " << item.quota << " cost " << item.cost
           << (item.mode == 0 ? "" : " shadow") << (item.lease.empty() ? "" : " ") << item.lease
           << "]";
    }
    if (entry.op == kRefund) {
      text << " id " << batch.keys[entry.id] << " since " << entry.since << " " << entry.value;
    }
    text << "\n";
  }
  return text.str();
}

std::string ToString(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t n : numbers) text += std::to_string(n) + " ";
  return text;
}

/// A random history: 4 to 15 keys of all algorithms, and the batches that change them.
class History {
 public:
  History(RedisClient& redis, const std::string& sha, Source& source)
      : redis_(redis), sha_(sha), source_(source), chooser_(source, {}) {
    redis_.Command({"FLUSHALL"});
    const std::uint64_t keys = 4 + source.Below(12);
    // The script has a fast path for batches of ordinary entries, so half of the histories consist
    // mostly of these.
    usual_ = source.Below(2) == 0;
    const bool leases = !usual_ && source.Below(3) != 0;
    for (std::uint64_t i = 0; i < keys; ++i) {
      auto algorithm = static_cast<Algorithm>(source.Below(kAlgorithms - (leases ? 0 : 1)));
      if (usual_ && algorithm == Algorithm::kSlidingLog && source.Below(8) != 0) {
        algorithm = Algorithm::kGcra;
      }
      keys_.push_back({"k" + std::to_string(i), property::AnyQuota(source, algorithm)});
    }
  }

  /// Runs random batches. Returns the first difference between script and model, or nothing.
  std::optional<std::string> Run(int batches) {
    for (int i = 0; i < batches; ++i) {
      if (source_.Below(12) == 0) Corrupt();
      if (source_.Below(6) == 0) Plant();
      MoveClock();
      const Batch batch = AnyBatch();
      if (auto wrong = Compare(batch)) return wrong;
      if (i % 4 == 0 || i + 1 == batches) {
        if (auto wrong = CompareStored()) return *wrong + ToString(batch);
      }
    }
    return std::nullopt;
  }
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  struct Key {
    std::string name;
    Quota quota;
  };

  void MoveClock() {
    const Key& key = keys_[source_.Below(keys_.size())];
    const Stored& stored = model_.keys[key.name];
    std::int64_t time = stored.hash[key.quota.algorithm() == Algorithm::kTokenBucket ? 1 : 0];
    if (!stored.log.empty()) time = stored.log.back().at.time_since_epoch().count();
    if (!stored.leases.empty()) time = stored.leases.back().expiry.time_since_epoch().count();
    if (!stored.exists) time = now_;
    now_ = chooser_.NextTime(key.quota, now_, time, model_.last);
    // Moves the clock to the exact time of a random log entry or the expiry of a random lease.
    if (!stored.log.empty() && source_.Below(4) == 0) {
      now_ = stored.log[source_.Below(stored.log.size())].at.time_since_epoch().count();
    } else if (!stored.leases.empty() && source_.Below(4) == 0) {
      now_ = stored.leases[source_.Below(stored.leases.size())].expiry.time_since_epoch().count();
    }
    // The clock of Redis is after 1970, and a time plus the longest debt stays below 2^53 until
    // 2041.
    if (now_ < 100'000'000'000'000 || now_ > 2'200'000'000'000'000) now_ = property::kStart;
  }

  std::size_t PlaceOf(Batch& batch, const std::string& key) {
    const auto found = std::ranges::find(batch.keys, key);
    if (found != batch.keys.end()) return static_cast<std::size_t>(found - batch.keys.begin());
    batch.keys.push_back(key);
    return batch.keys.size() - 1;
  }

  std::size_t PlaceOf(Batch& batch, const Quota& quota) {
    const auto found = std::ranges::find(batch.quotas, quota);
    if (found != batch.quotas.end()) return static_cast<std::size_t>(found - batch.quotas.begin());
    batch.quotas.push_back(quota);
    return batch.quotas.size() - 1;
  }

  Item AnyItem(Batch& batch, Key& key) {
    if (source_.Below(24) == 0) {
      // A reload usually keeps the period of a quota, but the script must not rely on that.
      key.quota = source_.Below(4) == 0 ? property::AnyQuota(source_, key.quota.algorithm())
                                        : property::ChangedQuota(source_, key.quota);
    }
    Item item{PlaceOf(batch, key.name), PlaceOf(batch, key.quota)};
    item.cost = chooser_.Cost(key.quota, model_.last);
    item.mode = source_.Below(5) == 0 ? 1 : 0;
    if (key.quota.algorithm() == Algorithm::kConcurrency) {
      item.lease = "lease " +
                   std::to_string(source_.Below(static_cast<std::uint64_t>(key.quota.limit()) + 2));
    }
    return item;
  }

  Entry AnyApply(Batch& batch) {
    Entry entry;
    entry.count = source_.OneOf<std::int64_t>({1, 1, 1, 2, 5, 40, 2147483647});
    const std::uint64_t charges = source_.OneOf<std::uint64_t>({1, 1, 1, 1, 2, 3, 5});
    const std::uint64_t begin = source_.Below(keys_.size());
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(charges, keys_.size()); ++i) {
      entry.items.push_back(AnyItem(batch, keys_[(begin + i) % keys_.size()]));
    }
    if (entry.items.size() == 1 && source_.Below(4) != 0) entry.items[0].mode = 0;
    return entry;
  }

  Entry AnyEntry(Batch& batch) {
    if (usual_ && source_.Below(80) != 0) {
      Entry entry;
      entry.count = source_.OneOf<std::int64_t>({1, 1, 1, 2, 40});
      entry.items.push_back(AnyItem(batch, keys_[source_.Below(keys_.size())]));
      entry.items[0].mode = 0;
      return entry;
    }
    const std::uint64_t choice = source_.Below(20);
    if (choice < 12) return AnyApply(batch);
    Key& key = keys_[source_.Below(keys_.size())];
    const bool leases = key.quota.algorithm() == Algorithm::kConcurrency;
    Entry entry;
    entry.items.push_back(AnyItem(batch, key));
    entry.op = kLook;
    if (choice < 15) {
      entry.op = leases ? kRenew : kDebit;
    } else if (choice < 18) {
      entry.op = leases ? kRelease : kRefund;
    } else if (choice < 19 && source_.Below(3) == 0) {
      entry.op = kReset;
    }
    if (leases && (entry.op == kLook || entry.op == kReset) && source_.Below(2) == 0) {
      entry.items[0].lease.clear();
    }
    if (entry.op == kRefund) {
      const std::int64_t period = key.quota.period().count();
      entry.id = PlaceOf(batch, "rf:" + key.name + ":" + std::to_string(source_.Below(40)));
      entry.since = source_.Between(0, 2);
      entry.value = source_.OneOf<std::int64_t>({0, 1, period - 1, period, 2 * period, 3});
      if (entry.since == 2) entry.value = now_ - entry.value;
    }
    return entry;
  }

  Batch AnyBatch() {
    Batch batch;
    const std::int64_t entries = source_.Magnitude(64);
    if (source_.Below(8) == 0) PlaceOf(batch, "unused");
    if (source_.Below(4) == 0) {
      for (std::size_t i = keys_.size(); i-- > 0;) PlaceOf(batch, keys_[i].name);
    }
    for (std::int64_t i = 0; i < entries; ++i) batch.entries.push_back(AnyEntry(batch));
    return batch;
  }

  std::optional<std::string> Compare(const Batch& batch) {
    std::vector<std::string> arguments = batch.Arguments();
    arguments.insert(arguments.begin(), {"EVALSHA", sha_});
    arguments.push_back(std::to_string(now_ / 1'000'000));
    arguments.push_back(std::to_string(now_ % 1'000'000));
    const Reply reply = redis_.Command(arguments);
    for (const Entry& entry : batch.entries)
      steps_ += static_cast<std::int64_t>(entry.items.size());
    const auto expected = model_.Apply(batch, Time{Micros{now_}});
    if (!reply) return "no reply";
    const std::string text(reply->str == nullptr ? "" : reply->str, reply->len);
    if (reply->type != REDIS_REPLY_STRING) return "replied " + text + "\n" + ToString(batch);
    const auto got = Unpack(text);
    if (!got) return "not msgpack";
    if (*got == expected) return std::nullopt;
    return ToString(batch) + "  got      " + ToString(*got) + "\n  expected " + ToString(expected);
  }

  std::optional<std::string> CompareStored() {
    for (const Key& key : keys_) {
      const Stored& stored = model_.keys[key.name];
      if (stored.corrupt) continue;
      const std::string got = Text(key, stored);
      const std::string expected = StoredText(stored);
      if (got != expected) {
        std::string text = key.name;
        text.append(" ").append(property::ToString(key.quota)).append("\n  stored   ").append(got);
        return text.append("\n  expected ").append(expected).append("\n");
      }
      if (auto wrong = CompareTtl(key, stored)) return wrong;
    }
    return std::nullopt;
  }

  std::string Text(const Key& key, const Stored& stored) {
    switch (key.quota.algorithm()) {
      case Algorithm::kSlidingLog:
        return LogText(redis_.Command({"ZRANGE", key.name, "0", "-1", "WITHSCORES"}));
      case Algorithm::kConcurrency:
        return LeasesText(redis_.Command({"ZRANGE", key.name, "0", "-1", "WITHSCORES"}));
      default: return HashText(redis_.Command({"HGETALL", key.name}), stored.algorithm);
    }
  }

  /// Checks that every stored key has a TTL and that it does not end before the key has recovered.
  /// A difference of one minute is tolerated on a slow machine.
  std::optional<std::string> CompareTtl(const Key& key, const Stored& stored) {
    const Reply reply = redis_.Command({"PTTL", key.name});
    if (!stored.exists) {
      return reply->integer == -2 ? std::nullopt : std::optional(key.name + " exists\n");
    }
    if (reply->integer < 0) return key.name + " has no TTL\n";
    const auto recovered = model_.recovered.find(key.name);
    if (recovered == model_.recovered.end()) return std::nullopt;
    const std::int64_t ms = (recovered->second - Time{Micros{now_}}).count() / 1000;
    const bool list = key.quota.algorithm() == Algorithm::kSlidingLog ||
                      key.quota.algorithm() == Algorithm::kConcurrency;
    if (list && reply->integer + 60'000 < ms + kLongerMs) {
      return key.name + " ends before it has recovered: " + std::to_string(reply->integer) + "\n";
    }
    // CompareStored has already compared `expires` with the model. If the last batch set it, the
    // TTL must match it.
    const auto renewed = model_.renewed.find(key.name);
    if (list || renewed == model_.renewed.end()) return std::nullopt;
    const std::int64_t ttl = renewed->second + kLongerMs;
    if (reply->integer > ttl || reply->integer + 60'000 < ttl) {
      return key.name + " has another TTL than it says: " + std::to_string(reply->integer) + "\n";
    }
    return std::nullopt;
  }

  void Corrupt() {
    const Key& key = keys_[source_.Below(keys_.size())];
    Stored& stored = model_.keys[key.name];
    if (!stored.exists || stored.corrupt) return;
    const Algorithm algorithm = key.quota.algorithm();
    const bool list = algorithm == Algorithm::kSlidingLog || algorithm == Algorithm::kConcurrency;
    const std::uint64_t choice = source_.Below(list ? 3 : 6);
    stored.corrupt = choice != 1 && choice != 3;
    switch (choice) {
      case 0: redis_.Command({"SET", key.name, "a string"}); break;
      case 1:
        redis_.Command({"DEL", key.name});
        stored.exists = false;
        break;
      case 2:
        if (algorithm == Algorithm::kSlidingLog) {
          redis_.Command({"ZADD", key.name, "8999999999999999", "junk"});
        } else if (algorithm == Algorithm::kConcurrency) {
          redis_.Command({"ZADD", key.name, "5", "#"});
        } else {
          const std::string word =
              source_.OneOf<const char*>({"word", "1.5", "nan", "inf", "9007199254740994", "",
                                          "-9e99", "5:-1", "5:1.5", "5:"});
          redis_.Command({"HSET", key.name, FieldOf(algorithm), word});
        }
        break;
      case 3:
        redis_.Command(
            {"HSET", key.name, "expires", source_.OneOf<const char*>({"word", "nan", "inf"})});
        stored.expires = -1;
        break;
      case 4: redis_.Command({"HSET", key.name, CounterOf(algorithm), "1e99"}); break;
      default: redis_.Command({"HDEL", key.name, FieldOf(algorithm)}); break;
    }
  }

  /// Stores numbers at the edges of what the quota allows, as if another quota had left them.
  void Plant() {
    const Key& key = keys_[source_.Below(keys_.size())];
    Stored& stored = model_.keys[key.name];
    const Quota& q = key.quota;
    if (!stored.exists || stored.corrupt || !stored.log.empty() || !stored.leases.empty()) return;
    const std::int64_t edge = source_.Between(-1, 1);
    const std::int64_t most = std::int64_t{1} << 53;
    const std::int64_t units = std::clamp<std::int64_t>(
        source_.OneOf({Saturation(q), q.capacity(), most, std::int64_t{1}}) + edge, 0, most);
    const std::int64_t ticks = q.recovery().count() * source_.Between(-2, 2) + edge;
    const std::int64_t rest = source_.OneOf<std::int64_t>({0, 0, GrainsPerTick(q), most - 1}) + 1;
    auto& hash = stored.hash;
    switch (q.algorithm()) {
      case Algorithm::kTokenBucket:
        hash = {source_.Below(2) == 0 ? units : -units, now_ + ticks, rest - 1};
        redis_.Command({"HSET", key.name, "tokens", std::to_string(hash[0]), "last_refill",
                        TimeAndRest(hash[1], hash[2])});
        break;
      case Algorithm::kGcra:
        hash = {now_ + ticks, rest - 1, source_.Below(2) == 0 ? 0 : std::min(units, most / 2)};
        redis_.Command({"HSET", key.name, "tat", TimeAndRest(hash[0], hash[1]), "owed",
                        std::to_string(hash[2])});
        break;
      case Algorithm::kFixedWindow:
        hash = {now_ + ticks, units, 0};
        redis_.Command(
            {"HSET", key.name, "start", std::to_string(hash[0]), "count", std::to_string(hash[1])});
        break;
      default:
        hash = {now_ + ticks, units, source_.Below(2) == 0 ? 0 : units};
        redis_.Command({"HSET", key.name, "start", std::to_string(hash[0]), "current",
                        std::to_string(hash[1]), "previous", std::to_string(hash[2])});
        break;
    }
  }

  RedisClient& redis_;
  const std::string& sha_;
  Source& source_;
  property::Chooser chooser_;
  std::vector<Key> keys_;
  Model model_;
  std::int64_t now_ = property::kStart;
  std::int64_t steps_ = 0;
  bool usual_ = false;
};

void RunSteps(std::uint64_t seed, std::int64_t steps) {
  RedisServer server;
  RedisClient redis = server.Connect();
  const std::string sha = redis.Text({"SCRIPT", "LOAD", ScriptWithClock()});
  ASSERT_EQ(sha.size(), 40U) << sha;
  std::int64_t made = 0;
  for (; made < steps; ++seed) {
    Source source(seed);
    History history(redis, sha, source);
    const auto wrong = history.Run(60);
    made += history.steps();
    ASSERT_FALSE(wrong) << "seed " << seed << "\n" << *wrong;
  }
  std::cout << made << " steps\n";
}

// Four tests, so that ctest can run them in parallel.
TEST(TIDEGATE_SUITE, ScriptMatchesModelFromFirstSeed) { RunSteps(1'000'000, TIDEGATE_STEPS / 4); }
TEST(TIDEGATE_SUITE, ScriptMatchesModelFromSecondSeed) { RunSteps(2'000'000, TIDEGATE_STEPS / 4); }
TEST(TIDEGATE_SUITE, ScriptMatchesModelFromThirdSeed) { RunSteps(3'000'000, TIDEGATE_STEPS / 4); }
TEST(TIDEGATE_SUITE, ScriptMatchesModelFromFourthSeed) { RunSteps(4'000'000, TIDEGATE_STEPS / 4); }

}  // namespace
}  // namespace tidegate::redis_test
