-- SPDX-License-Identifier: Apache-2.0
-- src/core/gcra.cpp. {tat, owed, expires, rest}
local function gcra(state, op, cost, count, extra, now, limit, period, capacity, recovery, x, y, saturation, origin)
  local tat, owed, rest = state[1], state[2], state[4]
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
        -- (grains - most) > recovery * x, turned so that what may be beyond 2^53 is only compared.
        repaired = (tat - now - recovery) * x + rest > most
      else
        -- 60000000 is kShortReach.
        local ahead = tat - now + (rest > 0 and 1 or 0) - recovery
        repaired = ahead > owed and ahead > recovery and ahead > 60000000
      end
      if repaired then
        grains = most
      else
        -- The whole ticks that `most` lasts for are held, the rest of tat is waited for.
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
    if cost <= capacity then
      local left, price = full - grains, cost * y
      if left >= price then
        if count == 1 then
          admitted = 1
        else
          admitted = (left - left % price) / price
          if admitted > count then
            admitted = count
          end
        end
        grains = grains + admitted * price
      end
    end
    if op == 0 then
      return admitted
    end
  else
    admitted = 1
    local units = (grains + -grains % y) / y
    if op == 3 then
      if origin == 1 then
        -- What is held counts as a debt, too. Beyond 2^53 it is only known to be too much.
        local all = grains + (at - now) * x
        units = (all + -all % y) / y
      end
      units = capacity + extra - units
      if units < 0 then
        units = 0
      end
      if cost < units then
        units = cost
      end
      grains = grains + units * y
    else
      if cost < units then
        units = cost
      end
      grains = grains - units * y
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
      ends = at  -- Nothing is owed, but the clock is held: tat itself lies ahead.
    end
    state[1], state[4] = at + (grains - rest) / x, rest
    if origin == 0 then
      state[2] = grains > full and grains - full or 0
    else
      if tat <= now or repaired or owed < recovery then
        owed = recovery
      end
      if owed < ends - now then
        owed = ends - now
      end
      state[2] = owed > 60000000 and owed or 0
    end
    return admitted, ends, repaired and 2 or 1
  end
  return admitted, ends, 0
end
