// SPDX-License-Identifier: Apache-2.0
#include "telemetry/hot_keys.hpp"

#include <algorithm>
#include <boost/functional/hash.hpp>
#include <random>
#include <unordered_map>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tidegate {
namespace {

constexpr std::size_t kLeastPlaces = 1024;

/// Adds the estimates that two windows have of one key.
HotSketch::Estimate SumOf(const HotSketch::Estimate& a, const HotSketch::Estimate& b) noexcept {
  HotSketch::Estimate sum = a.named ? a : b;
  sum.count = a.count + b.count;
  sum.error = a.error + b.error;
  return sum;
}

using KeyName = std::pair<std::uint32_t, std::string_view>;  ///< Slot and identity.

struct CountAndError {
  std::uint64_t count;
  std::uint64_t error;
};

HotList MergeLists(std::span<const std::shared_ptr<const HotReport>> parts, std::size_t by,
                   std::size_t most) {
  HotList merged;
  for (const auto& part : parts) {
    if (part == nullptr) continue;
    merged.total += part->by[by].total;
    merged.error += part->by[by].error;
  }
  // The sums of a key start as if no part listed the key. Each part that lists the key then
  // replaces its share of the sums.
  const CountAndError absent{merged.error, merged.error};
  std::unordered_map<KeyName, CountAndError, boost::hash<KeyName>> sums;
  for (const auto& part : parts) {
    if (part == nullptr) continue;
    const HotList& list = part->by[by];
    for (const HotKey& key : list.keys) {
      CountAndError& sum = sums.try_emplace({key.slot, key.identity}, absent).first->second;
      sum.count += key.count - list.error;  // May wrap, but the unsigned sums are right.
      sum.error += key.error - list.error;
    }
  }
  std::vector<std::pair<KeyName, CountAndError>> all(sums.begin(), sums.end());
  std::ranges::sort(all, [](const auto& a, const auto& b) {
    return a.second.count != b.second.count ? a.second.count > b.second.count : a.first < b.first;
  });
  if (all.size() > most) {
    merged.error = std::max(merged.error, all[most].second.count);
    all.resize(most);
  }
  for (const auto& [name, sum] : all) {
    merged.keys.push_back({name.first, std::string(name.second), sum.count, sum.error});
  }
  return merged;
}

}  // namespace

std::string_view Name(HotBy by) noexcept {
  constexpr std::string_view kNames[] = {"requests", "denials", "cost"};
  return kNames[static_cast<std::size_t>(by)];
}

HotReport Merge(std::span<const std::shared_ptr<const HotReport>> parts, std::size_t most) {
  HotReport report;
  for (std::size_t by = 0; by < kHotLists; ++by) report.by[by] = MergeLists(parts, by, most);
  for (const auto& part : parts) {
    if (part == nullptr) continue;
    report.requests += part->requests;
    report.span = std::max(report.span, part->span);
  }
  return report;
}

void HotKeys::Counts::Add(const SketchKey& key, std::uint64_t times,
                          std::uint64_t weight) noexcept {
  sketch.Add(key, times * weight);
  if (times != 1) largest = std::max(largest, times * weight);
}

HotSketch::Estimate HotKeys::Counts::Get(std::uint64_t fingerprint) const noexcept {
  HotSketch::Estimate estimate = sketch.Get(fingerprint);
  const SamplingError error = SamplingError::Of(estimate.count, largest);
  estimate.count += error.above;
  estimate.error = std::min(estimate.error + error.above + error.below, estimate.count);
  return estimate;
}

std::uint64_t HotKeys::Counts::Bound(std::size_t place) const noexcept {
  const std::uint64_t bound = sketch.Bound(place);
  return bound + SamplingError::Of(bound, largest).above;
}

void HotKeys::Window::Clear() noexcept {
  for (Counts& list : lists) {
    list.sketch.Clear();
    list.largest = 0;
  }
  cost_apart = false;
  largest_sampled_cost = 1;
}

const HotKeys::Counts& HotKeys::Window::ReportedBy(HotBy by) const noexcept {
  const bool shared = by == HotBy::kCost && !cost_apart;
  return lists[static_cast<std::size_t>(shared ? HotBy::kRequests : by)];
}

HotKeys::HotKeys(net::Timers& timers, std::size_t most, Clock::time_point now, std::uint32_t exact)
    : net::Timer(timers),
      requests_(exact, RandomSeed()),
      denials_(exact, RandomSeed()),
      most_(most),
      slot_secret_(RandomSeed() | 1),  // Odd: no two slots have the same product.
      began_(now),
      began_before_(now),
      published_(std::make_shared<const HotReport>()) {
  static_assert(std::tuple_size_v<decltype(secret_)> >= XXH3_SECRET_SIZE_MIN);
  std::random_device random;
  std::ranges::generate(secret_, [&] { return static_cast<unsigned char>(random()); });
  const std::size_t places = std::max(kLeastPlaces, 4 * most);
  for (auto& window : windows_) window = std::make_unique<Window>(places);
  ArmAt(now + kEvery);
}

SketchKey HotKeys::KeyOf(const Request& request) const noexcept {
  const std::string_view identity = request.identity;
  const std::uint64_t hash =
      XXH3_64bits_withSecret(identity.data(), identity.size(), secret_.data(), secret_.size()) ^
      (request.slot * slot_secret_);
  return {hash == 0 ? 1 : hash, request.slot, identity};
}

HotKeys::Totals HotKeys::AllTotals() const noexcept {
  return {requests_.total(), denials_.total(), requests_.total() + extra_cost_, decided_requests_};
}

HotKeys::Totals HotKeys::WindowTotals() const noexcept {
  Totals totals = AllTotals();
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] -= at_begin_before_[i];
  return totals;
}

void HotKeys::Record(const Request& request) noexcept {
  const std::uint64_t cost = request.cost;
  if (cost != 1) RecordCost(request);
  const std::uint64_t requests = request.request_due ? requests_.Weight() : 0;
  const std::uint64_t denials = request.denial_due ? denials_.Weight() : 0;
  if ((requests | denials) == 0) return;
  const SketchKey key = KeyOf(request);
  Window& window = *windows_[0];
  if (requests != 0) {
    if (window.cost_apart && cost < kLargeCost) window.of(HotBy::kCost).Add(key, requests, cost);
    window.of(HotBy::kRequests).Add(key, requests, 1);
  }
  if (denials != 0) window.of(HotBy::kDenials).Add(key, denials, 1);
}

void HotKeys::RecordCost(const Request& request) noexcept {
  extra_cost_ += request.cost - 1;
  Window& window = *windows_[0];
  HotSketch& costs = window.of(HotBy::kCost).sketch;
  if (!std::exchange(window.cost_apart, true)) costs.CopyFrom(window.of(HotBy::kRequests).sketch);
  if (request.cost < kLargeCost) {
    window.largest_sampled_cost = std::max(window.largest_sampled_cost, request.cost);
  } else {
    costs.Add(KeyOf(request), request.cost);
  }
}

void HotKeys::NoteSampling() noexcept {
  Window& window = *windows_[0];
  Counts& requests = window.of(HotBy::kRequests);
  if (requests_.sampling()) requests.largest = Sampler::kInterval;
  if (denials_.sampling()) window.of(HotBy::kDenials).largest = Sampler::kInterval;
  // Requests that sampling skipped had a cost too.
  window.of(HotBy::kCost).largest = requests.largest * window.largest_sampled_cost;
}

/// Lists the keys of both windows. `error` of the list is the largest of: the bound of keys without
/// a place, the counts of places without a name, and the count of the first key that is cut off.
HotList HotKeys::ListBy(HotBy by, std::uint64_t total) const {
  const Counts& now = windows_[0]->ReportedBy(by);
  const Counts& before = windows_[1]->ReportedBy(by);
  HotList list;
  list.total = total;
  std::vector<HotSketch::Estimate> all;
  const auto take = [&](const HotSketch::Estimate& key) {
    if (key.named) {
      all.push_back(key);
    } else {
      list.error = std::max(list.error, key.count);
    }
  };
  for (std::size_t place = 0; place < now.sketch.places(); ++place) {
    if (place % HotSketch::kWays == 0) {
      list.error = std::max(list.error, now.Bound(place) + before.Bound(place));
    }
    if (const std::uint64_t key = now.sketch.At(place)) take(SumOf(now.Get(key), before.Get(key)));
    if (const std::uint64_t key = before.sketch.At(place)) {
      const HotSketch::Estimate other = now.Get(key);
      if (!other.placed) take(SumOf(other, before.Get(key)));
    }
  }
  constexpr std::ranges::greater hotter;
  if (all.size() > most_) {
    const auto cut = all.begin() + static_cast<std::ptrdiff_t>(most_);
    std::ranges::nth_element(all, cut, hotter, &HotSketch::Estimate::count);
    list.error = std::max(list.error, cut->count);
    all.erase(cut, all.end());
  }
  std::ranges::sort(all, hotter, &HotSketch::Estimate::count);
  list.keys.reserve(all.size());
  for (const HotSketch::Estimate& key : all) {
    list.keys.push_back({key.slot, std::string(key.identity), key.count, key.error});
  }
  return list;
}

void HotKeys::OnTimer(Clock::time_point now) {
  Tick(now);
  ArmAt(now + kEvery);
}

void HotKeys::Rotate(Clock::time_point now) noexcept {
  std::swap(windows_[0], windows_[1]);
  windows_[0]->Clear();
  at_begin_before_ = std::exchange(at_begin_, AllTotals());
  began_before_ = std::exchange(began_, now);
  NoteSampling();  // A block of the previous window continues in this one.
}

void HotKeys::Tick(Clock::time_point now) {
  requests_.Refill();
  denials_.Refill();
  const Totals totals = WindowTotals();
  const bool quiet = totals[0] + totals[kHotLists] == 0;
  if (std::exchange(quiet_, quiet) && quiet) return Rotate(now);
  NoteSampling();
  auto report = std::make_shared<HotReport>();
  for (std::size_t i = 0; i < kHotLists; ++i) {
    report->by[i] = ListBy(static_cast<HotBy>(i), totals[i]);
  }
  report->requests = totals[kHotLists];
  report->span = std::chrono::duration_cast<std::chrono::milliseconds>(now - began_before_);
  if (now - began_ >= kWindow) Rotate(now);
  // Holds the old report after the swap, so that it is freed after the unlock.
  std::shared_ptr<const HotReport> next = std::move(report);
  const std::lock_guard lock(mutex_);
  published_.swap(next);
}

std::shared_ptr<const HotReport> HotKeys::Published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

}  // namespace tidegate
