-- SPDX-License-Identifier: Apache-2.0
-- Records that a node is alive, and returns how many nodes are.
--
-- KEYS[1]  sorted set of nodes: member `<node id> <key id>`, score = microseconds of its last heartbeat
-- KEYS[2]  the fleet's HMAC secret
-- ARGV[1]  node id, without spaces
-- ARGV[2]  id of the HMAC key that this node uses
-- ARGV[3]  a secret for the fleet if it has none yet; empty: the node has a configured one
-- ARGV[4]  the microseconds for which a heartbeat counts
-- ARGV[5]  1 if the node leaves, else 0
-- returns  number of live nodes, number of those whose key id differs from ours, the secret or ''
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local node, own_key, candidate, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if not ttl or not (ttl >= 1 and ttl <= 9007199254740992 - now) then
  return redis.error_reply('TIDEGATE the time to live of a heartbeat is wrong')
end

-- A heartbeat more than one lifetime ahead was written by a clock that has been set back since.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%d', now - ttl))
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. string.format('%d', now + ttl), '+inf')
local live, others = 0, 0
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], '0', '-1')) do
  if string.sub(member, 1, #node + 1) == node .. ' ' then
    -- The node's key may have been another one.
    redis.call('ZREM', KEYS[1], member)
  else
    live = live + 1
    if string.sub(member, string.find(member, ' ', 1, true) + 1) ~= own_key then
      others = others + 1
    end
  end
end
if ARGV[5] ~= '1' then
  redis.call('ZADD', KEYS[1], string.format('%d', now), node .. ' ' .. own_key)
  redis.call('PEXPIRE', KEYS[1], string.format('%d', math.ceil(ttl / 100)))  -- 10 * ttl, in ms
  if candidate ~= '' then
    redis.call('SET', KEYS[2], candidate, 'NX')
  end
  live = live + 1
end
return {live, others, redis.call('GET', KEYS[2]) or ''}
