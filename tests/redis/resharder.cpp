// SPDX-License-Identifier: Apache-2.0
#include "redis/resharder.hpp"

#include <algorithm>
#include <exception>

#include "redis/slot_move.hpp"

namespace tidegate::redis_test {

Resharder::Resharder(RedisCluster& cluster, std::vector<int> slots, Options options)
    : cluster_(cluster), options_(options) {
  // Removes duplicates: a slot that is named twice would be moved from its former owner the second
  // time.
  std::ranges::sort(slots);
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  std::vector<std::size_t> owners;
  owners.reserve(slots.size());
  for (const int slot : slots) owners.push_back(cluster.MasterOf(slot));
  thread_ = std::thread([this, slots = std::move(slots), owners = std::move(owners)]() mutable {
    try {
      Run(std::move(slots), std::move(owners));
    } catch (const std::exception& refused) {
      problem_ = refused.what();
    }
    ended_ = true;
  });
}

void Resharder::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void Resharder::Run(std::vector<int> slots, std::vector<std::size_t> owners) {
  for (std::size_t turn = 0; !stop_; turn = (turn + 1) % slots.size()) {
    const std::size_t to = (owners[turn] + 1) % cluster_.masters();
    SlotMove move(cluster_, slots[turn], owners[turn], to);
    move.Begin();
    std::this_thread::sleep_for(options_.half_way);
    // The target already gets the new keys of this slot, so the loop ends.
    for (std::vector<std::string> left; !(left = move.KeysLeft(2)).empty();) {
      move.MoveKey(left[0]);
      ++keys_moved_;
      std::this_thread::sleep_for(left.size() > 1 ? options_.between_keys : options_.half_way);
    }
    move.End();
    owners[turn] = to;
    ++slots_moved_;
    std::this_thread::sleep_for(options_.pause);
  }
}

}  // namespace tidegate::redis_test
