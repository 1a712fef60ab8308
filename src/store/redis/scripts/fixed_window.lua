-- SPDX-License-Identifier: Apache-2.0
-- src/core/fixed_window.cpp. {start, count, expires, 0}
local function fixed_window(op, k, cost, count, charged_at)
  local state = states[k]
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
  if op <= apply then
    local left = limit - used
    if left >= cost then
      if count == 1 then
        admitted = 1
      else
        admitted = (left - left % cost) / cost
        if admitted > count then
          admitted = count
        end
      end
      used = used + admitted * cost
    end
    if op == admits then
      return admitted
    end
  elseif op == debit then
    admitted = 1
    used = used + cost
    if used > saturation then
      used = saturation
    end
  elseif charged_at >= here then
    admitted = 1
    used = used - cost
    if used < 0 then
      used = 0
    end
  end

  local ends = used > 0 and start + period or now
  if admitted > 0 or repaired then
    state[1], state[2], dirty[k] = start, used, true
    if repaired then
      repairs = repairs + 1
    end
  end
  return admitted, ends
end
