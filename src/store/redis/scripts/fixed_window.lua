-- SPDX-License-Identifier: Apache-2.0
-- The twin of src/core/fixed_window.cpp. state = {start, count, expires, 0}
local function fixed_window(state, op, cost, count, extra, now, limit, period, capacity, recovery, x, y, saturation)
  local start, used = state[1], state[2]
  local here, repaired = now - now % period, false
  if used > saturation then
    used = saturation
  end
  if start < here then
    start, used = here, 0
  elseif start > here then
    if start - here > period then
      start, repaired = here, true
    else
      start = start - start % period
    end
  end

  local admitted = 0
  if op <= 1 then
    local left = limit - used
    if left >= cost then
      admitted = left >= cost * count and count or (left - left % cost) / cost
      used = used + admitted * cost
    end
    if op == 0 then
      return admitted
    end
  elseif op == 3 then
    admitted = 1
    local room = limit + extra - used
    if room > 0 then
      used = used + (cost < room and cost or room)
    end
  elseif extra >= here then
    admitted = 1
    used = used - cost
    if used < 0 then
      used = 0
    end
  end

  local ends = used > 0 and start + period or now
  if admitted > 0 or repaired then
    state[1], state[2] = start, used
    return admitted, ends, repaired and 2 or 1
  end
  return admitted, ends, 0
end
