-- Takes a name, unless it is taken: returns 'done', 'full', or what is kept under it.
-- It may be repeated: a claim is random, and so knows itself.
-- KEYS: reply, replies. ARGV: the claim; how long it holds; how many replies there may
-- be; and when it is now. Times are in milliseconds.
local there = redis.call('GET', KEYS[1])
if there and there ~= ARGV[1] then return {'taken', there} end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[4])
if not redis.call('ZSCORE', KEYS[2], KEYS[1]) and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[3]) then return {'full'} end
redis.call('ZADD', KEYS[2], string.format('%.0f', ARGV[4] + ARGV[2]), KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'done'}
