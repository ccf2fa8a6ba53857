-- Notes the bundles that no version uses, each with the time at which it first was one of
-- them, and forgets all others. Returns the notes.
-- KEYS: the notes. ARGV: the bundles.
local now = redis.call("TIME")[1]
local named = {}
for _, bundle in ipairs(ARGV) do
	named[bundle] = true
	redis.call("HSETNX", KEYS[1], bundle, now)
end
for _, bundle in ipairs(redis.call("HKEYS", KEYS[1])) do
	if not named[bundle] then
		redis.call("HDEL", KEYS[1], bundle)
	end
end
return redis.call("HGETALL", KEYS[1])
