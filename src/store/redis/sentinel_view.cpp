// SPDX-License-Identifier: Apache-2.0
#include "store/redis/sentinel_view.hpp"

#include <algorithm>
#include <ranges>
#include <string_view>
#include <utility>

#include "store/redis/greeting.hpp"
#include "store/redis/redis_error.hpp"

namespace tidegate::redis {
namespace {

constexpr const char* kMalformed = "sent a malformed reply: check that its port is a sentinel's";

std::optional<Endpoint> ReadAddress(std::string_view host, std::string_view port) {
  const auto number = ParseNumber<std::uint16_t>(port, 1);
  if (!number || !IsHost(host)) return std::nullopt;
  return Endpoint{.host = std::string(host), .port = *number};
}

/// Returns the value of a key, or an empty text. `map` contains keys and values in turn.
std::string_view ValueOf(const Reply& map, std::string_view key) {
  for (std::size_t i = 0; i + 1 < map.elements.size(); i += 2) {
    if (map.elements[i].text == key) return map.elements[i + 1].text;
  }
  return {};
}

/// Returns the beginning of a server's error message, safe to print.
std::string Quoted(std::string_view error) {
  std::string words(error.substr(0, 200));
  std::ranges::replace_if(
      words, [](char c) { return c < ' ' || c > '~'; }, '?');
  return "`" + words + "`";
}

/// Returns true if `slave <its name> <host> <port> @ <master's name> <host> <port>` names `master`.
bool IsReplicaOf(std::string_view event, std::string_view master) {
  const std::size_t at = event.find(" @ ");
  return at != std::string_view::npos &&
         event.substr(at + 3).starts_with(std::string(master) + ' ');
}

bool SaysNoSuchMaster(const Reply& reply) {
  return reply.is(Reply::Type::kError) && reply.text.contains("No such master");
}

}  // namespace

SentinelView::SentinelView(std::vector<Endpoint> sentinels, std::string master_name,
                           std::uint64_t seed)
    : sentinels_(std::move(sentinels)), name_(std::move(master_name)), backoff_(seed) {
  if (sentinels_.size() > kMostSentinels) sentinels_.resize(kMostSentinels);
  configured_ = sentinels_.size();
  at_ = static_cast<std::size_t>(backoff_.Random() % sentinels_.size());
}

void SentinelView::OnConnected(TimePoint now) {
  connected_ = true;
  ask_at_ = now;
}

void SentinelView::OnLost(TimePoint now) {
  const bool was_useful = std::exchange(useful_, false);
  connected_ = false;
  awaited_ = 0;
  named_.reset();
  ask_at_ = TimePoint::max();
  at_ = (at_ + 1) % sentinels_.size();
  connect_at_ = ++failures_ < sentinels_.size() ? now : now + backoff_.Next();
  // Without this, sentinels that answer and then close would be queried as fast as the network is.
  if (was_useful) connect_at_ = std::max(connect_at_, last_asked_ + kAgain);
}

void SentinelView::Ask(std::string& out, TimePoint now) {
  for (const char* const query : {"GET-MASTER-ADDR-BY-NAME", "MASTER", "SENTINELS"}) {
    AppendCommand(out, {"SENTINEL", query, name_});
  }
  awaited_ = 3;
  named_.reset();
  if (trouble_) ++in_trouble_;
  wanted_ = Wanted::kNo;
  last_asked_ = now;
  ask_at_ = TimePoint::max();
}

SentinelView::News SentinelView::OnReply(const Reply& reply, TimePoint now) {
  if (reply.is(Reply::Type::kPush)) return OnPush(reply, now);
  if (awaited_ == 0) return News::kNothing;
  const int left = --awaited_;
  if ((left > 0 && SaysNoSuchMaster(reply)) || (left == 2 && reply.is(Reply::Type::kNull))) {
    return Useless("has no master named '" + name_ +
                   "': write the name in its `sentinel monitor` line");
  }
  if (left > 0) return left == 2 ? OnAddress(reply) : OnMaster(reply);
  OnOthers(reply);
  Rest(now);
  return News::kNothing;
}

SentinelView::News SentinelView::OnAddress(const Reply& reply) {
  if (reply.is(Reply::Type::kError)) {
    switch (KindOf(reply.text)) {
      case ErrorKind::kNoAuth: return Useless("requires a password: write store.sentinel.password");
      case ErrorKind::kNoPerm:
        return Useless(
            "does not allow the user of store.sentinel to query the master: grant it "
            "`+sentinel|get-master-addr-by-name +sentinel|master +sentinel|sentinels`");
      default:
        return Useless(
            "does not answer as a sentinel: check its port (reply: " + Quoted(reply.text) + ")");
    }
  }
  if (reply.is(Reply::Type::kArray) && reply.elements.size() == 2) {
    named_ = ReadAddress(reply.elements[0].text, reply.elements[1].text);
  }
  return named_ ? News::kNothing : Useless(kMalformed);
}

SentinelView::News SentinelView::OnMaster(const Reply& reply) {
  // An error means that this user may not query the epoch: then there is nothing to compare.
  if (!reply.is(Reply::Type::kError)) {
    const auto epoch = ReadWhole(ValueOf(reply, "config-epoch"));
    if (!epoch || !reply.is(Reply::Type::kArray)) return Useless(kMalformed);
    // If all sentinels are behind, they were set up again, and epoch_ is of the time before.
    if (*epoch < epoch_ && ++behind_ < sentinels_.size()) {
      return Useless("is behind the others: its epoch is " + std::to_string(*epoch) +
                     ", but another sentinel's is " + std::to_string(epoch_));
    }
    epoch_ = *epoch;
    behind_ = 0;
  }
  useful_ = true;
  failures_ = 0;
  backoff_.Reset();
  problem_.clear();
  const bool named = named_.has_value();
  const News news = named ? Believe(*std::exchange(named_, std::nullopt)) : News::kNothing;
  if (news == News::kMaster || !trouble_) fruitless_ = 0;
  if (news == News::kNothing && trouble_ && named && ++fruitless_ >= kMostFruitless) {
    fruitless_ = 0;
    return Useless(
        "still reports a master that does not answer or is not a master: trying another sentinel");
  }
  return news;
}

void SentinelView::OnOthers(const Reply& reply) {
  if (!reply.is(Reply::Type::kArray)) return;
  std::vector<Endpoint> named;
  for (const Reply& other : reply.elements) {
    if (named.size() == kMostSentinels) break;
    auto address = ReadAddress(ValueOf(other, "ip"), ValueOf(other, "port"));
    if (address) named.push_back(*std::move(address));
  }
  const auto has = [](const std::vector<Endpoint>& all, const Endpoint& one) {
    return std::ranges::find(all, one) != all.end();
  };
  for (const Endpoint& one : named) {
    if (has(sentinels_, one)) continue;
    if (sentinels_.size() < kMostSentinels) {
      sentinels_.push_back(one);
      continue;
    }
    // Sentinels whose addresses change with each start replace those that are not reported any
    // more.
    for (std::size_t i = configured_; i < sentinels_.size(); ++i) {
      if (i == at_ || has(named, sentinels_[i])) continue;
      sentinels_[i] = one;
      break;
    }
  }
}

SentinelView::News SentinelView::OnPush(const Reply& push, TimePoint now) {
  const auto& parts = push.elements;
  if (!connected_ || parts.size() != 3 || parts[0].text != "message") return News::kNothing;
  if (parts[1].text == "+promoted-slave" && IsReplicaOf(parts[2].text, name_)) {
    // From now on, the sentinel that leads the failover replies with the new master. It publishes
    // `+switch-master` only after all replicas have been reconfigured.
    AskNow(now);
    return News::kNothing;
  }
  if (parts[1].text != "+switch-master") return News::kNothing;
  std::string_view rest = parts[2].text;
  if (!rest.starts_with(name_)) return News::kNothing;
  rest.remove_prefix(name_.size());
  // Old host, old port, new host, new port, each behind one space. So the first piece is empty.
  std::vector<std::string_view> words;
  for (const auto word : std::views::split(rest, ' ') | std::views::take(6)) {
    words.emplace_back(word);
  }
  if (words.size() != 5 || !words[0].empty()) return News::kNothing;
  const auto address = ReadAddress(words[3], words[4]);
  if (!address) return News::kNothing;
  named_.reset();  // The reply with this master is older than the message.
  AskNow(now);
  return Believe(*address);
}

void SentinelView::AskNow(TimePoint now) {
  wanted_ = Wanted::kNow;
  if (awaited_ == 0) ask_at_ = now;
}

void SentinelView::OnWell() noexcept {
  trouble_ = false;
  in_trouble_ = 0;
  fruitless_ = 0;
}

void SentinelView::OnTrouble(TimePoint now) {
  trouble_ = true;
  if (!connected_ || wanted_ != Wanted::kNo) return;
  wanted_ = Wanted::kSoon;
  if (awaited_ == 0) ask_at_ = std::min(ask_at_, Soon(now));
}

void SentinelView::Rest(TimePoint now) {
  const bool soon = trouble_ || wanted_ == Wanted::kSoon;
  ask_at_ = wanted_ == Wanted::kNow ? now : soon ? Soon(now) : now + kEvery;
}

SentinelView::TimePoint SentinelView::Soon(TimePoint now) {
  constexpr auto kHalf = std::chrono::duration_cast<Backoff::Duration>(kAgain) / 2;
  const auto chance = backoff_.Random() % (static_cast<std::uint64_t>(kHalf.count()) + 1);
  // A failover takes seconds or does not come at all, so queries become less frequent.
  const auto again =
      kAgain * std::min<std::int64_t>(5, 1 + static_cast<std::int64_t>(in_trouble_) / 20);
  return std::max(now, last_asked_ + again + Backoff::Duration{static_cast<std::int64_t>(chance)});
}

SentinelView::News SentinelView::Believe(const Endpoint& address) {
  if (master_ == address) return News::kNothing;
  master_ = address;
  OnWell();  // The trouble was with the master before.
  return News::kMaster;
}

SentinelView::News SentinelView::Useless(std::string why) {
  problem_ = "the sentinel at " + sentinel().Shown() + " " + std::move(why);
  awaited_ = 0;
  connected_ = false;
  ask_at_ = TimePoint::max();
  return News::kUseless;
}

}  // namespace tidegate::redis
