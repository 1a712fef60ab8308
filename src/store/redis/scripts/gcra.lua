-- SPDX-License-Identifier: Apache-2.0
-- The twin of src/core/gcra.cpp. state = {tat, rest, expires, owed}
local function gcra(state, op, cost, count, extra, now, limit, period, capacity, recovery, x, y, saturation, origin)
  local tat, rest, owed = state[1], state[2], state[4]
  local full = capacity * y
  local grains, at, repaired = 0, now, false
  if tat >= now then
    if rest >= x then
      rest = x - 1
    end
    local most = full
    if origin == 0 then
      local debt = saturation * y
      most = most + (owed < debt and owed or debt)
    end
    grains = (tat - now) * x + rest
    if grains > most then
      if origin == 0 then
        -- (grains - most) > recovery * x, turned so that a value that may exceed 2^53 is only compared.
        repaired = (tat - now - recovery) * x + rest > most
      else
        -- 60000000 is kShortReach.
        local ahead = tat - now + (rest > 0 and 1 or 0) - recovery
        repaired = ahead > owed and ahead > recovery and ahead > 60000000
      end
      if repaired then
        grains = most
      else
        -- Hold the whole ticks for which `most` lasts, and wait for the rest of tat.
        local ticks = most - rest
        ticks = (ticks - ticks % x) / x
        if origin == 1 and ticks * x + rest < most then
          ticks = ticks + 1
        end
        at, grains = tat - ticks, ticks * x + rest
        if grains < 0 then
          grains = 0
        end
      end
    end
  end

  local admitted = 0
  if op <= 1 then
    local left, price = full - grains, cost * y
    if left >= price then
      admitted = left >= price * count and count or (left - left % price) / price
      grains = grains + admitted * price
    end
    if op == 0 then
      return admitted
    end
  else
    admitted = 1
    local units = (grains + -grains % y) / y
    if op == 3 then
      if origin == 1 then
        -- What is held counts as a debt too. A sum beyond 2^53 is inexact, but too large in any case.
        local all = grains + (at - now) * x
        units = (all + -all % y) / y
      end
      local room = capacity + extra - units
      if room > 0 then
        grains = grains + (cost < room and cost or room) * y
      end
    else
      grains = grains - (cost < units and cost or units) * y
      if grains < 0 then
        grains = 0
      end
    end
  end

  local ends = now
  if grains > 0 then
    ends = at + (grains + -grains % x) / x
  end
  if admitted > 0 or repaired then
    rest = grains % x
    if at > ends then
      ends = at  -- Nothing is owed, but the clock is held: tat itself is in the future.
    end
    state[1], state[2] = at + (grains - rest) / x, rest
    if origin == 0 then
      state[4] = grains > full and grains - full or 0
    else
      if tat <= now or repaired or owed < recovery then
        owed = recovery
      end
      if owed < ends - now then
        owed = ends - now
      end
      state[4] = owed > 60000000 and owed or 0
    end
    return admitted, ends, repaired and 2 or 1
  end
  return admitted, ends, 0
end
