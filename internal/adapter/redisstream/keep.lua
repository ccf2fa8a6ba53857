-- Says that a member is at work on entries: those that are pending for it count as just given,
-- and of a lease, which is what the others look at then, all of its time is left.
-- KEYS: streams; with a token their leases. ARGV: group, member, lease token or '', how long a
-- lease is in ms; for each stream the first and the last entry, and how many there are.
-- Returns 'lost' if none is the member's any more.
local group, member, token, takeover = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local streams = token == '' and #KEYS or #KEYS / 2
local answer = 'lost'
for i = 1, streams do
  if token ~= '' then
    if redis.call('GET', KEYS[streams + i]) == token then
      redis.call('PEXPIRE', KEYS[streams + i], takeover)
      answer = 'done'
    end
  else
    local at = 2 + 3 * i
    local pending = redis.call('XPENDING', KEYS[i], group, ARGV[at], ARGV[at + 1], ARGV[at + 2], member)
    if #pending > 0 then
      local claim = { 'XCLAIM', KEYS[i], group, member, 0 }
      for _, entry in ipairs(pending) do claim[#claim + 1] = entry[1] end
      claim[#claim + 1] = 'JUSTID'
      redis.call(unpack(claim))
      answer = 'done'
    end
  end
end
return answer
