-- Notes a bundle in the index, as one that is on its way, "whole" or "going".
-- KEYS: the index. ARGV: the bundle, its bytes, the bytes that all may have, the state.
-- Returns "done", or "full".
local state = ARGV[4] or "coming"
local now = redis.call("TIME")
local created = string.format("%d%06d", now[1], now[2])
if state == "coming" then
	local total = tonumber(ARGV[2])
	local all = redis.call("HGETALL", KEYS[1])
	for i = 1, #all, 2 do
		if all[i] ~= ARGV[1] then
			total = total + (tonumber(string.match(all[i + 1], "^%d+")) or 0)
		end
	end
	if total > tonumber(ARGV[3]) then
		return "full"
	end
end
redis.call("HSET", KEYS[1], ARGV[1], ARGV[2] .. " " .. created .. " " .. state)
return "done"
