-- Adds a decision, unless a scheduler with a higher fencing token has written.
-- It may be repeated: the decision is added once.
-- KEYS: decisions, fence. ARGV: the fencing token, how many decisions to keep, a
-- random name, the decision.
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[2]) or '0') then return 'fenced' end
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if newest and newest[2][2] == ARGV[3] then return 'done' end
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'write', ARGV[3], 'decision', ARGV[4])
redis.call('SET', KEYS[2], ARGV[1])
return 'done'
