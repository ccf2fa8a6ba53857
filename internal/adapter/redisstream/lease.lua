-- Spreads the leases of streams over the members of a group: renews those of one member,
-- gives back what is more than its share, and takes what is free. What is leased to the same
-- member with another token is free: that process is gone.
-- KEYS: members; leases. ARGV: member, lease token, which begins with it and a slash, how long
-- a lease is in ms.
-- Returns the indexes of the member's leases.
local member, token, takeover = ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + takeover, member)
redis.call('PEXPIRE', KEYS[1], takeover)
local share = math.ceil((#KEYS - 1) / redis.call('ZCARD', KEYS[1]))
local mine, free = {}, {}
for i = 1, #KEYS - 1 do
  local holder = redis.call('GET', KEYS[1 + i])
  if holder == token then
    mine[#mine + 1] = i
  elseif not holder or string.sub(holder, 1, #member + 1) == member .. '/' then
    free[#free + 1] = i
  end
end
while #mine > share do redis.call('DEL', KEYS[1 + table.remove(mine)]) end
for _, i in ipairs(mine) do redis.call('PEXPIRE', KEYS[1 + i], takeover) end
while #mine < share and #free > 0 do
  local i = table.remove(free, 1)
  redis.call('SET', KEYS[1 + i], token, 'PX', takeover)
  mine[#mine + 1] = i
end
return mine
