-- Keeps a reply, or frees the name of one that is not there yet: returns 'done', or the reply
-- that is kept already. It may be repeated.
-- KEYS: reply, replies. ARGV: the text, or '' to free the name; how long to keep it; and when it
-- is now. Times are in milliseconds.
local there = redis.call('GET', KEYS[1])
if there and there ~= ARGV[1] and cjson.decode(there).status ~= 0 then return {'taken', there} end
if ARGV[1] == '' then
	redis.call('DEL', KEYS[1])
	redis.call('ZREM', KEYS[2], KEYS[1])
else
	redis.call('ZADD', KEYS[2], string.format('%.0f', ARGV[3] + ARGV[2]), KEYS[1])
	redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return {'done'}
