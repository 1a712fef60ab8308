// SPDX-License-Identifier: Apache-2.0
#include "telemetry/hot_keys.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tidegate {
namespace {

constexpr std::size_t kLeastPlaces = 1024;

/// Of the system: for secrets.
void FillRandom(void* bytes, std::size_t size) {
  // Up to 256 bytes arrive whole or not at all, once the system's pool is initialised.
  while (getrandom(bytes, size, 0) != static_cast<ssize_t>(size)) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  }
}

std::uint64_t RandomNumber() {
  std::uint64_t number = 0;
  FillRandom(&number, sizeof number);
  return number;
}

/// What two windows know of one key.
struct Both {
  std::uint64_t count;
  std::uint64_t error;
  bool named;
  std::uint32_t slot;
  std::string_view identity;
};

Both SumOf(const HotSketch::Known& a, const HotSketch::Known& b) noexcept {
  const HotSketch::Known& name = a.named ? a : b;
  return {a.count + b.count, a.error + b.error, name.named, name.slot, name.identity};
}

}  // namespace

void HotKeys::View::Add(const SketchKey& key, std::uint64_t times, std::uint64_t weight) noexcept {
  sketch.Add(key, times * weight);
  if (times != 1) largest = std::max(largest, times * weight);
}

HotSketch::Known HotKeys::View::Look(std::uint64_t fingerprint) const noexcept {
  HotSketch::Known known = sketch.Look(fingerprint);
  const HotMargin margin = HotMargin::Of(known.count, largest);
  known.count += margin.more;
  known.error = std::min(known.error + margin.more + margin.less, known.count);
  return known;
}

std::uint64_t HotKeys::View::Bound(std::size_t place) const noexcept {
  const std::uint64_t bound = sketch.Bound(place);
  return bound + HotMargin::Of(bound, largest).more;
}

void HotKeys::Window::Clear() noexcept {
  for (View& view : views) {
    view.sketch.Clear();
    view.largest = 0;
  }
  cost_apart = false;
  dearest = 1;
}

const HotKeys::View& HotKeys::Window::sketched(HotBy view) const noexcept {
  const bool shared = view == HotBy::kCost && !cost_apart;
  return views[static_cast<std::size_t>(shared ? HotBy::kRequests : view)];
}

HotKeys::HotKeys(net::Timers& timers, std::size_t most, Clock::time_point now, std::uint32_t exact)
    : net::Timer(timers),
      requests_(exact, RandomNumber()),
      denials_(exact, RandomNumber()),
      most_(most),
      slot_secret_(RandomNumber() | 1),  // Odd: no two slots have the same product.
      began_(now),
      since_(now),
      published_(std::make_shared<const HotReport>()) {
  static_assert(std::tuple_size_v<decltype(secret_)> >= XXH3_SECRET_SIZE_MIN);
  FillRandom(secret_.data(), secret_.size());
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

HotKeys::Totals HotKeys::TotalsNow() const noexcept {
  const Totals all = AllTotals();
  Totals now{};
  for (std::size_t view = 0; view < kHotViews; ++view) now[view] = all[view] - begun_at_[view];
  return now;
}

HotKeys::Totals HotKeys::AllTotals() const noexcept {
  return {requests_.passed(), denials_.passed(), requests_.passed() + more_cost_};
}

void HotKeys::Add(const Request& request) noexcept {
  const std::uint64_t cost = request.cost;
  if (cost != 1) NoteCost(request);
  const std::uint64_t asked = request.asked ? requests_.Turn() : 0;
  const std::uint64_t refused = request.refused ? denials_.Turn() : 0;
  if ((asked | refused) == 0) return;
  const SketchKey key = KeyOf(request);
  Window& window = *windows_[0];
  View& requests = window.of(HotBy::kRequests);
  if (asked != 0) {
    if (window.cost_apart && cost < kDear) window.of(HotBy::kCost).Add(key, asked, cost);
    requests.Add(key, asked, 1);
  }
  if (refused != 0) window.of(HotBy::kDenials).Add(key, refused, 1);
}

void HotKeys::NoteCost(const Request& request) noexcept {
  const std::uint64_t cost = request.cost;
  more_cost_ += cost - 1;
  Window& window = *windows_[0];
  View& costs = window.of(HotBy::kCost);
  if (!std::exchange(window.cost_apart, true)) {
    costs.sketch.CopyFrom(window.of(HotBy::kRequests).sketch);
  }
  if (cost < kDear) {
    window.dearest = std::max(window.dearest, cost);
  } else {
    costs.sketch.Add(KeyOf(request), cost);
  }
}

void HotKeys::NoteSampling() noexcept {
  Window& window = *windows_[0];
  View& requests = window.of(HotBy::kRequests);
  View& denials = window.of(HotBy::kDenials);
  if (requests_.sampling()) requests.largest = HotPace::kOneOf;
  if (denials_.sampling()) denials.largest = HotPace::kOneOf;
  // Those that were left out count as well, whatever they cost.
  window.of(HotBy::kCost).largest = requests.largest * window.dearest;
}

/// Both windows as one list. What is not listed is bounded by the largest of: what keys without a
/// place can have, places without a name, the first that is cut off.
HotList HotKeys::ListOf(HotBy by) const {
  const View& now = windows_[0]->sketched(by);
  const View& before = windows_[1]->sketched(by);
  HotList list;
  const auto number = static_cast<std::size_t>(by);
  list.total = TotalsNow()[number] + totals_before_[number];
  std::vector<Both> all;
  const auto take = [&](const Both& key) {
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
    if (const std::uint64_t key = now.sketch.At(place)) {
      take(SumOf(now.Look(key), before.Look(key)));
    }
    if (const std::uint64_t key = before.sketch.At(place)) {
      const HotSketch::Known other = now.Look(key);
      if (!other.placed) take(SumOf(other, before.Look(key)));
    }
  }
  const auto hotter = [](const Both& a, const Both& b) { return a.count > b.count; };
  if (all.size() > most_) {
    const auto cut = all.begin() + static_cast<std::ptrdiff_t>(most_);
    std::nth_element(all.begin(), cut, all.end(), hotter);
    list.error = std::max(list.error, cut->count);
    all.erase(cut, all.end());
  }
  std::sort(all.begin(), all.end(), hotter);
  list.keys.reserve(all.size());
  for (const Both& key : all) {
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
  totals_before_ = TotalsNow();
  begun_at_ = AllTotals();
  requests_before_ = requests_total_ - requests_at_begin_;
  requests_at_begin_ = requests_total_;
  since_ = std::exchange(began_, now);
  // A block that began before goes on in this one.
  NoteSampling();
}

void HotKeys::Tick(Clock::time_point now) {
  requests_.Refill();
  denials_.Refill();
  const bool quiet = TotalsNow()[0] + totals_before_[0] + Requests() == 0;
  if (std::exchange(quiet_, quiet) && quiet) return Rotate(now);
  NoteSampling();
  auto report = std::make_shared<HotReport>();
  for (std::size_t view = 0; view < kHotViews; ++view) {
    report->by[view] = ListOf(static_cast<HotBy>(view));
  }
  report->requests = Requests();
  report->span = std::chrono::duration_cast<std::chrono::milliseconds>(now - since_);
  if (now - began_ >= kWindow) Rotate(now);
  std::shared_ptr<const HotReport> next = std::move(report);  // The old one goes after the lock.
  const std::lock_guard lock(mutex_);
  published_.swap(next);
}

std::shared_ptr<const HotReport> HotKeys::Published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

}  // namespace tidegate
