-- SPDX-License-Identifier: Apache-2.0
-- Steps the usual entries: an apply with one enforcing charge on a hash that is absent or holds plain numbers. The first
-- other entry ends the loop; entries.lua takes it and all entries after it.
local steps = {[0] = token_bucket, [2] = sliding_window, [3] = fixed_window, [4] = gcra}
local e, p = 1, 9 * quotas + 4

while e <= entries and not has_leases do
  local k, q, cost, count = batch[p + 3], batch[p + 4], batch[p + 5], batch[p + 1]
  if q ~= quota then
    if not is_whole(q, 1, quotas) then
      break
    end
    local b = 9 * q - 6
    quota, algorithm, limit, period, capacity = q, batch[b], batch[b + 1], batch[b + 2], batch[b + 3]
    recovery, x, y, saturation, origin = batch[b + 4], batch[b + 5], batch[b + 6], batch[b + 7], batch[b + 8]
    step = steps[algorithm]
  end
  if not step or batch[p] ~= 1 or batch[p + 2] ~= 1 or batch[p + 6] ~= 0 or
     cost ~= 1 and not is_whole(cost, 1, 2147483647) or count ~= 1 and not is_whole(count, 1, 2147483647) then
    break
  end

  local state = states[k]
  if state then
    if kind[k] ~= algorithm then
      break
    end
  else
    local key = KEYS[k]
    if not key or kind[k] then
      break
    end
    -- Any malformed value, nil and NaN included, fails a comparison below and ends the loop.
    local a, b, c = nil, nil, 0
    if algorithm == 0 then
      state = ask('HMGET', key, 'tokens', 'last_refill', 'expires')
      a, b = tonumber(state[1]), tonumber(state[2])
      if not b and state[2] then
        b, c = match(state[2], '^(%d+):(%d+)$')
        b, c = tonumber(b), tonumber(c)
      end
    elseif algorithm == 4 then
      state = ask('HMGET', key, 'tat', 'owed', 'expires')
      a, b, c = tonumber(state[1]), 0, tonumber(state[2] or 0)
      if not a and state[1] then
        a, b = match(state[1], '^(%d+):(%d+)$')
        a, b = tonumber(a), tonumber(b)
      end
    elseif algorithm == 3 then
      state = ask('HMGET', key, 'start', 'count', 'expires')
      a, b = tonumber(state[1]), tonumber(state[2])
    else
      state = ask('HMGET', key, 'start', 'current', 'expires', 'previous')
      a, b, c = tonumber(state[1]), tonumber(state[2]), tonumber(state[4])
    end
    local ends = tonumber(state[3])
    if a and b and c and ends and a % 1 == 0 and b % 1 == 0 and a <= largest and a >= -largest and b <= largest and
       b >= 0 and ends >= 0 and ends <= largest and (c == 0 or c % 1 == 0 and c <= largest and c >= 0) then
      state[1], state[2], state[3], state[4] = a, b, ends, c
    elseif state[1] == false and state[2] == false and state[3] == false and not state[4] then
      local fresh = algorithm == 0 and capacity or algorithm == 4 and now or now - now % period
      state = {fresh, algorithm == 0 and now or 0, -1, 0}
    else
      break
    end
    kind[k], states[k] = algorithm, state
    local at = 3 * k + 2
    reply[at], reply[at + 1], reply[at + 2] = state[1], state[2], state[4]
  end

  local admitted, ends, effect =
    step(state, 1, cost, count, now, now, limit, period, capacity, recovery, x, y, saturation, origin)
  if effect ~= 0 then
    dirty[k] = true
    if effect == 2 then
      repairs = repairs + 1
    end
  end
  -- The TTL ends too soon, or later than Tidegate sets any TTL: then `expires` is wrong, and the key may have no TTL.
  if ends > state[3] or state[3] - now > 4 * (recovery + ends - now) + 10000000 then
    recovered[k], recoveries[k] = ends, recovery
  elseif recovered[k] then
    recovered[k] = nil
  end
  filled = filled + 1
  reply[filled] = admitted
  e, p = e + 1, p + 7
end

-- This block ends with entries.lua. It runs only for batches with other than the usual entries.
if e <= entries then
