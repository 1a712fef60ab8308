-- SPDX-License-Identifier: Apache-2.0
-- src/core/gcra.cpp. {tat, owed, expires, rest}
local function gcra(state, op, cost, count, extra, now, limit, period, capacity, recovery, x, y, saturation)
  local tat, owed, rest = state[1], state[2], state[4]
  local full = capacity * y
  local grains, at, repaired = 0, now, false
  if tat >= now then
    if rest >= x then
      rest = x - 1
    end
    local most = saturation * y
    if owed < most then
      most = owed
    end
    most = full + most
    grains = (tat - now) * x + rest
    if grains > most then
      -- (grains - most) > recovery * x, turned so that what may be beyond 2^53 is only compared.
      if (tat - now - recovery) * x + rest > most then
        grains, repaired = most, true
      else
        -- The whole ticks that `most` lasts for are held, the rest of tat is waited for.
        local ticks = most - rest
        ticks = (ticks - ticks % x) / x
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
    state[1], state[2] = at + (grains - rest) / x, grains > full and grains - full or 0
    state[4] = rest
    return admitted, ends, repaired and 2 or 1
  end
  return admitted, ends, 0
end
