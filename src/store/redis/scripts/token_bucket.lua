-- SPDX-License-Identifier: Apache-2.0
-- The twin of src/core/token_bucket.cpp. state = {tokens, last_refill, expires, rest}
--
-- All four steps take the same arguments. op is 0 (return how many it would admit, change nothing), 1 apply (a look has a
-- count of 0), 3 debit or 4 refund. extra is max_debt for a debit and the time of the charge for a refund. A step changes
-- `state` and returns how many are admitted, when the key will have recovered, and 0 unchanged, 1 charged or 2 repaired.
local function token_bucket(state, op, cost, count, extra, now, limit, period, capacity, recovery, x, y, saturation)
  local tokens, last_refill, part = state[1], state[2], state[4]
  local at, repaired = now, false
  if tokens > capacity then
    tokens = capacity
  elseif tokens < -saturation then
    tokens = -saturation
  end
  if last_refill > now then
    if last_refill - now > recovery then
      last_refill, part, repaired = now, 0, true
    else
      at = last_refill
    end
  end
  if not repaired then
    if part >= x then
      part = x - 1
    end
    part = (at - last_refill) * x + part
    -- A product beyond 2^53 is beyond any bucket.
    if part >= (capacity - tokens) * y then
      tokens, part = capacity, 0
    elseif part >= y then
      local rest = part % y
      tokens, part = tokens + (part - rest) / y, rest
    end
  end

  local admitted = 0
  if op <= 1 then
    if tokens >= cost then
      admitted = tokens >= cost * count and count or (tokens - tokens % cost) / cost
    end
    if op == 0 then
      return admitted
    end
    tokens = tokens - admitted * cost
  else
    admitted = 1
    if op == 3 then
      local room = tokens + extra
      if room > 0 then
        tokens = tokens - (cost < room and cost or room)
      end
    else
      tokens = tokens + cost
      if tokens >= capacity then
        tokens, part = capacity, 0
      end
    end
  end

  local ends = now
  if tokens < capacity then
    local grains = (capacity - tokens) * y - part
    if x ~= 1 then
      grains = (grains + -grains % x) / x
    end
    ends = at + grains
  end
  if admitted > 0 or repaired then
    local rest = 0
    if x ~= 1 then
      rest = part % x
      part = (part - rest) / x
    end
    state[1], state[2], state[4] = tokens, at - part, rest
    return admitted, ends, repaired and 2 or 1
  end
  return admitted, ends, 0
end
