-- SPDX-License-Identifier: Apache-2.0
-- Writes the logs of sliding_log.lua, which describes `logs`, back to their sorted sets. Returns save(k), which returns
-- whether the key exists afterwards.
local function LogWriter(logs)
  -- Runs one command for many arguments, at most 2,000 at a time.
  local function write_many(command, key, all)
    for i = 1, #all, 2000 do
      write(command, key, unpack(all, i, i + 1999 < #all and i + 1999 or #all))
    end
  end

  -- Writes only what differs, and adds members before it removes others: while its slot moves to another node, a deleted
  -- key cannot be written any more.
  local function rewrite(k, log)
    if log.from > log.to or log.corrupt then
      write('DEL', KEYS[k])
    end
    if log.from > log.to then
      return false
    end
    local old = log.old
    if not old then
      old = {}
      local all = not log.corrupt and read('ZRANGE', KEYS[k], '0', '-1', 'WITHSCORES') or {}
      for i = 1, #all, 2 do
        old[all[i]] = tonumber(all[i + 1])
      end
    end
    local total, added, removed = log.base, {}, {}
    for i = 1, log.to do
      total = total + log.sizes[i]
      if i >= log.from then
        local member = format('%d:%d', log.sizes[i], total)
        if old[member] ~= log.times[i] then
          added[#added + 1], added[#added + 2] = format('%d', log.times[i]), member
        end
        old[member] = nil
      end
    end
    for member in pairs(old) do
      removed[#removed + 1] = member
    end
    write_many('ZADD', KEYS[k], added)
    write_many('ZREM', KEYS[k], removed)
    return true
  end

  return function(k)
    local log = logs[k]
    local exists = present[k] and not deleted[k]
    if log.times and (dirty[k] or deleted[k]) then
      exists = rewrite(k, log)
    elseif dirty[k] then
      if log.tail_at then
        write('ZADD', KEYS[k], format('%d', log.tail_at), format('%d:%d', log.tail_units, log.sum))
        exists = true
      end
      if log.joined then
        write('ZREM', KEYS[k], log.member)
      end
      if present[k] then
        write('ZREMRANGEBYSCORE', KEYS[k], '-inf', format('%d', log.gone))
      end
    end
    return exists
  end
end
