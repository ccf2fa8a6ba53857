-- Says that a member is at work on entries: those that are pending for it count as just given,
-- and of a lease, which is what the others look at then, all of its time is left.
-- KEYS: streams; with a token their leases. ARGV: group, member, lease token or '', how long a
-- lease is in ms; for each stream the number of its entries, and their ids in order.
-- Returns for each stream of which entries are lost its index with their ids; all are without any.
local group, member, token, takeover = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local streams = token == '' and #KEYS or #KEYS / 2
local at, lost = 5, {}

local function keep(i, n)
  local ours, from, last = {}, ARGV[at + 1], ARGV[at + n]
  repeat
    local some = redis.call('XPENDING', KEYS[i], group, from, last, 1000, member)
    for _, entry in ipairs(some) do
      ours[entry[1]] = true
      from = '(' .. entry[1]
    end
  until #some < 1000
  local missing = { i }
  for first = 1, n, 1000 do
    local claim = { 'XCLAIM', KEYS[i], group, member, 0 }
    for j = first, math.min(first + 999, n) do
      local id = ARGV[at + j]
      local to = ours[id] and claim or missing
      to[#to + 1] = id
    end
    if #claim > 5 then
      claim[#claim + 1] = 'JUSTID'
      redis.call(unpack(claim))
    end
  end
  if #missing > 1 then lost[#lost + 1] = missing end
end

for i = 1, streams do
  local n = tonumber(ARGV[at])
  if token == '' then
    keep(i, n)
  elseif redis.call('GET', KEYS[streams + i]) == token then
    redis.call('PEXPIRE', KEYS[streams + i], takeover)
  else
    lost[#lost + 1] = { i }
  end
  at = at + 1 + n
end
return lost
