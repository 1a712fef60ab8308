// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidegate::bench {

/// The token bucket as people usually write it in Lua, with one EVALSHA per request.
///
/// KEYS[1]: the bucket. ARGV: units per second, capacity, the caller's time in seconds, cost.
/// Returns whether the request is allowed, and the remaining units.
///
/// It includes the usual mistakes: a denial stores the refilled tokens with the old time, so they
/// are refilled again. Times are whole seconds, so that all numbers are short, which is in favour
/// of this script.
inline constexpr const char* kUsualScript = R"(
local rate, capacity = tonumber(ARGV[1]), tonumber(ARGV[2])
local now, requested = tonumber(ARGV[3]), tonumber(ARGV[4])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'last_refill')
local tokens, last_refill = tonumber(state[1]), tonumber(state[2])
if not tokens then
  tokens, last_refill = capacity, now
end
local new_tokens = math.min(capacity, tokens + math.max(0, now - last_refill) * rate)
local allowed = 0
if new_tokens >= requested then
  new_tokens, allowed, last_refill = new_tokens - requested, 1, now
end
redis.call('HMSET', KEYS[1], 'tokens', new_tokens, 'last_refill', last_refill)
redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate))
return {allowed, new_tokens}
)";

}  // namespace tidegate::bench
