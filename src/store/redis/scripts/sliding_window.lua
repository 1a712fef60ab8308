-- SPDX-License-Identifier: Apache-2.0
-- The twin of src/core/sliding_window.cpp. state = {start, current, expires, previous}
-- x is the slice, y the number of slices.
local function sliding_window(state, op, cost, count, extra, now, limit, period, capacity, recovery, x, y, saturation)
  local start, current, previous = state[1], state[2], state[4]
  local elapsed = now % period
  local here, repaired = now - elapsed, false
  elapsed = (elapsed - elapsed % x) / x
  if current > saturation then
    current = saturation
  end
  if previous > saturation then
    previous = saturation
  end
  if start < here then
    previous = here - start <= period and current or 0
    start, current = here, 0
  elseif start > here then
    if start - here > period then
      start, repaired = here, true
    else
      start = start - start % period
      if start > here then
        elapsed = 0
      end
    end
  end

  local admitted = 0
  if op <= 1 then
    local left, price = limit * y - (previous * (y - elapsed) + current * y), cost * y
    if left >= price then
      admitted = left >= price * count and count or (left - left % price) / price
      current = current + admitted * cost
    end
    if op == 0 then
      return admitted
    end
  elseif op == 3 then
    admitted = 1
    local left = (limit + extra) * y - (previous * (y - elapsed) + current * y)
    if left > 0 then
      local room = (left - left % y) / y
      current = current + (cost < room and cost or room)
    end
  elseif extra >= here then
    admitted = 1
    current = current > cost and current - cost or 0
  elseif extra >= start - period then
    admitted = 1
    previous = previous > cost and previous - cost or 0
  end

  local ends = now
  if current > 0 then
    ends = start + 2 * period
  elseif previous > 0 then
    ends = start + period
  end
  if admitted > 0 or repaired then
    state[1], state[2], state[4] = start, current, previous
    return admitted, ends, repaired and 2 or 1
  end
  return admitted, ends, 0
end
