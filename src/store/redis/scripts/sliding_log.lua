-- SPDX-License-Identifier: Apache-2.0
-- The twin of src/core/sliding_log.cpp on a sorted set: score = time, member = `units:total`, where total is the running
-- sum of all units up to this entry. So a subtraction tells how many units are in the window, and a search among at most
-- n entries when n units will have left it. Only refunds and repairs read the whole log: they `unfold` it.
--
-- This function is called only when a batch has such a charge, because making closures takes time.
local function SlidingLogs()
  -- By key. A folded log is described by:
  --   at, units, total, member   the newest entry in Redis; at is nil if there is none
  --   gone                       entries up to here have been dropped
  --   tail_at, tail_units        the entry that this batch adds: all of its steps have the same time
  --   joined                     the tail has taken the newest entry in
  --   sum                        the total of the last entry, the tail's if there is one
  -- An unfolded log has times and sizes (the units of each entry) from `from` to `to`; earlier ones are dropped. And:
  --   old                        the scores by member in Redis; nil: not known
  --   base                       the total before the first of `sizes`
  --   corrupt                    the key in Redis is malformed
  local logs = {}

  local function heal(k)
    healed = healed + 1
    present[k], deleted[k] = true, true
    logs[k] = {times = {}, sizes = {}, from = 1, to = 0, base = 0, corrupt = true}
  end

  -- Returns the units, the total and the time of an entry, or nil if it is malformed.
  local function parse(member, score)
    local units, total = match(member, '^(%d+):(%d+)$')
    units, total = whole(units, 1), whole(total, 1)
    score = whole(score, -largest)
    if units and total and score and total >= units then
      return units, total, score
    end
    return nil
  end

  local function load(k)
    kind[k] = 1
    local answer = ask('ZRANGE', KEYS[k], '-1', '-1', 'WITHSCORES')
    if answer.err then
      if not match(answer.err, 'WRONGTYPE') then
        return answer
      end
      heal(k)
      return nil
    end
    local log = {gone = -largest, sum = 0}
    logs[k] = log
    if answer[1] then
      present[k] = true
      log.units, log.total, log.at = parse(answer[1], answer[2])
      log.member, log.sum = answer[1], log.total
      if not log.units then
        heal(k)
      end
    end
    return nil
  end

  local function unfold(k)
    local log = logs[k]
    if log.times then
      return log
    end
    local times, sizes, n, old, base = {}, {}, 0, {}, nil
    local all = present[k] and read('ZRANGE', KEYS[k], '0', '-1', 'WITHSCORES') or {}
    for i = 1, #all, 2 do
      local units, total, at = parse(all[i], all[i + 1])
      if not units then
        heal(k)
        return logs[k]
      end
      old[all[i]] = at
      if at > log.gone and not (log.joined and all[i] == log.member) then
        n = n + 1
        times[n], sizes[n] = at, units
        base = base or total - units
      end
    end
    if log.tail_at then
      n = n + 1
      times[n], sizes[n] = log.tail_at, log.tail_units
    end
    log = {times = times, sizes = sizes, from = 1, to = n, old = old, base = base or 0}
    logs[k] = log
    return log
  end

  local function newest(log)
    if log.times then
      return log.times[log.to]
    end
    return log.tail_at or log.at
  end

  -- Returns the units and the total of the first entry after `bound` in Redis; nil if only the tail can be after it.
  local function first_after(k, log, bound)
    if bound < log.gone then
      bound = log.gone
    end
    if log.first_bound ~= bound then
      log.first_bound, log.first_units = bound, nil
      if log.at and log.at > bound then
        local answer = read('ZRANGEBYSCORE', KEYS[k], '(' .. format('%d', bound), '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
        if answer and answer[1] then
          local units, total, at = parse(answer[1], answer[2])
          if not units or total > log.total then
            heal(k)
            return nil
          end
          log.first_member, log.first_at, log.first_units, log.first_total = answer[1], at, units, total
        end
      end
    end
    if log.first_units and not (log.joined and log.first_member == log.member) then
      return log.first_units, log.first_total
    end
    return nil
  end

  -- Returns the number of units after `bound`.
  local function used_after(k, bound)
    local log = logs[k]
    if not log.times then
      local units, total = first_after(k, log, bound)
      if units then
        return log.sum - total + units
      end
      log = logs[k]
    end
    if not log.times then
      return log.tail_units or 0
    end
    local used = 0
    for i = log.to, log.from, -1 do
      if log.times[i] <= bound then
        break
      end
      used = used + log.sizes[i]
    end
    return used
  end

  -- Returns the time of the entry after `bound` with which `excess` units are reached.
  local function reaches(k, bound, excess)
    local log = logs[k]
    if log.times then
      for i = log.from, log.to do
        if log.times[i] > bound then
          excess = excess - log.sizes[i]
          if excess <= 0 then
            return log.times[i]
          end
        end
      end
      return now
    end
    local units, total = first_after(k, log, bound)
    if not units then
      return log.tail_at or now
    end
    if excess <= units then
      return log.first_at
    end
    -- Each entry has at least one unit, so it is among the next excess - units.
    local wanted = total - units + excess
    local rank = read('ZRANK', KEYS[k], log.first_member) or 0
    local low, high, at = rank + 1, rank + 1 + excess - units, log.tail_at
    while low < high do
      local middle = low + high
      middle = (middle - middle % 2) / 2
      local place = format('%d', middle)
      local answer = read('ZRANGE', KEYS[k], place, place, 'WITHSCORES')
      if not answer or not answer[1] or (log.joined and answer[1] == log.member) then
        high = middle  -- This is the tail or beyond it.
      else
        local _, reached, time = parse(answer[1], answer[2])
        if not reached then
          heal(k)
          return now
        end
        if reached >= wanted then
          high, at = middle, time
        else
          low = middle + 1
        end
      end
    end
    return at or now
  end

  -- Drops the entries up to `bound`.
  local function drop(k, bound)
    local log = logs[k]
    dirty[k] = true
    if not log.times then
      if log.gone < bound then
        log.gone = bound
      end
      return
    end
    while log.from <= log.to and log.times[log.from] <= bound do
      log.from = log.from + 1
    end
  end

  -- Returns the time of the step. Moves entries that are impossibly far ahead to it.
  local function step_time(k)
    local last = newest(logs[k])
    if not last or last <= now then
      return now
    end
    if last - now <= period then
      return last
    end
    local log = unfold(k)
    local ahead = 0
    while log.to >= log.from and log.times[log.to] >= now do
      ahead = ahead + log.sizes[log.to]
      log.to = log.to - 1
    end
    drop(k, now - period)
    if ahead > 0 then
      log.to = log.to + 1
      log.times[log.to], log.sizes[log.to] = now, ahead
    end
    repairs = repairs + 1
    return now
  end

  local function is_full(k, bound)
    local log = logs[k]
    if log.times then
      return log.to - log.from + 1 >= limit
    end
    local living = read('ZCOUNT', KEYS[k], '(' .. format('%d', bound), '+inf')
    return living and living >= limit
  end

  -- Adds units at `at`, no earlier than any entry. REQUIRES: dropped up to `bound`.
  local function add(k, at, units, bound, op)
    local log = logs[k]
    local last = newest(log)
    if last and last <= bound then
      last = nil
    end
    -- Only a debit can find a full log: if a request is admitted, the log has fewer entries than the limit.
    local joins = last and (last == at or op == debit and is_full(k, bound))
    if not log.times and log.sum + units > 4503599627370496 then
      log = unfold(k)  -- The log is written again, with totals that begin at zero.
      log.base = 0
      for i = 1, log.from - 1 do
        log.base = log.base - log.sizes[i]
      end
    end
    if log.times then
      if not joins or log.to < log.from then
        log.to = log.to + 1
        log.sizes[log.to] = 0
      end
      log.times[log.to], log.sizes[log.to] = at, log.sizes[log.to] + units
      return
    end
    log.sum = log.sum + units
    if log.tail_at then
      log.tail_units = log.tail_units + units
    elseif joins then
      log.tail_at, log.tail_units, log.joined = at, log.units + units, true
    else
      log.tail_at, log.tail_units = at, units
    end
  end

  local function give_back(k, units, charged_at)
    local before = repairs
    local at = step_time(k)
    -- While the clock is held, charges are logged with a later time than that of the charge.
    local moved = repairs > before or (at > now and charged_at + period > now)
    local log = unfold(k)
    local bound, admitted = at - period, 0
    for i = log.to, log.from, -1 do
      if units == 0 or log.times[i] <= bound then
        break
      end
      if moved or log.times[i] <= charged_at then
        local back = log.sizes[i] < units and log.sizes[i] or units
        log.sizes[i], units, admitted = log.sizes[i] - back, units - back, 1
      end
    end
    if admitted > 0 then
      drop(k, bound)
      local kept = log.from - 1
      for i = log.from, log.to do
        if log.sizes[i] > 0 then
          kept = kept + 1
          log.times[kept], log.sizes[kept] = log.times[i], log.sizes[i]
        end
      end
      log.to = kept
    end
    return admitted
  end

  local function note_recovery(k)
    local last = newest(logs[k])
    recovered[k], recoveries[k] = now, recovery
    if last and last + period > now then
      recovered[k] = last + period
    end
  end

  -- extra: max_debt for a debit, the time of the charge for a refund.
  local function act(op, k, cost, count, extra)
    local admitted = 0
    if op == refund then
      admitted = give_back(k, cost, extra)
    else
      local at = step_time(k)
      local bound = at - period
      local used = used_after(k, bound)
      local units
      if op == debit then
        local room = limit + extra - used
        admitted, units = 1, room > 0 and (cost < room and cost or room) or 0
      else
        local left = limit - used
        if left >= cost then
          admitted = left >= cost * count and count or (left - left % cost) / cost
        end
        units = admitted * cost
      end
      if op == admits then
        return admitted
      end
      if admitted > 0 then
        drop(k, bound)
        if units > 0 then
          add(k, at, units, bound, op)
        end
      end
    end
    note_recovery(k)
    return admitted, recovered[k]
  end

  -- Returns what a look of this cost reports: remaining, retry_after, more_after, reset_after, 1 for never. Like every
  -- look it repairs, even after a refund that did nothing.
  local function tell(k, cost)
    local at = step_time(k)
    note_recovery(k)
    local bound = at - period
    local used = used_after(k, bound)
    local remaining = limit > used and limit - used or 0
    local retry_after, more_after, reset_after = 0, 0, 0
    if used > 0 then
      reset_after = newest(logs[k]) + period - now
      more_after = reaches(k, bound, used + remaining + 1 - limit) + period - now
    end
    local never = cost > limit
    if not never and used + cost > limit then
      retry_after = reaches(k, bound, used + cost - limit) + period - now
    end
    return remaining, retry_after, more_after, reset_after, never and 1 or 0
  end

  local function forget(k)
    logs[k] = {times = {}, sizes = {}, from = 1, to = 0, base = 0, corrupt = logs[k].corrupt}
  end

  return {load = load, act = act, tell = tell, forget = forget, save = LogWriter(logs), note_recovery = note_recovery}
end
