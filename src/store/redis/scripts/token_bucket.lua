-- SPDX-License-Identifier: Apache-2.0
-- src/core/token_bucket.cpp. {tokens, last_refill, expires, rest}
-- Answers with how many it admits, and with when it will have recovered. `op` is admits (which changes nothing),
-- apply, debit or refund.
local function token_bucket(op, k, cost, count)
  local state = states[k]
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
  if op <= apply then
    if count == 1 then
      if tokens >= cost then
        admitted = 1
      end
    elseif tokens > 0 then
      admitted = (tokens - tokens % cost) / cost
      if admitted > count then
        admitted = count
      end
    end
    if op == admits then
      return admitted
    end
    tokens = tokens - admitted * cost
  else
    admitted = 1
    if op == debit then
      tokens = tokens - cost
      if tokens < -saturation then
        tokens = -saturation
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
    state[1], state[2], state[4], dirty[k] = tokens, at - part, rest, true
    if repaired then
      repairs = repairs + 1
    end
  end
  return admitted, ends
end
