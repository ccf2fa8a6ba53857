-- Takes a report of usage, if its number is above all that its writer has sent: it may be
-- repeated, and is counted once. What is not in the catalog, or was registered after the catalog that
-- the report was made by, is left out.
-- KEYS: writer, catalog, then the usage of each object.
-- ARGV: the number of the report, how long to know the writer, in seconds, the time in
-- milliseconds, the revision of the catalog that was in use, and how many fields the
-- usage of an object may have; then for each count the place of its object among the
-- keys, the field of that in the catalog, the stage, answers, cached, failed, missed,
-- micros, least, most, when the last failure was, in milliseconds or '', and that.
if tonumber(ARGV[1]) <= tonumber(redis.call('GET', KEYS[1]) or '0') then return 'done' end

-- First of all, so that a Redis that takes no writes says so here. From then on nothing
-- may end the script: it would not be undone, and never be repeated.
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
local summed = {'answers', 'cached', 'failed', 'missed', 'micros'}
for at = 6, #ARGV, 12 do
	local key, stage = KEYS[tonumber(ARGV[at])], ARGV[at + 2] .. '/'
	local since = redis.pcall('HGET', key, 'revision')
	local there = redis.pcall('HEXISTS', KEYS[2], ARGV[at + 1]) == 1
	if there and not since then -- registered by a release that did not count
		redis.pcall('HSET', key, 'since', ARGV[3], 'revision', '0')
		since = '0'
	end
	local fits = ARGV[at + 2] == '' or (tonumber(redis.pcall('HLEN', key)) or 0) < tonumber(ARGV[5])
	for _, name in ipairs(summed) do -- a stage that is counted already always does
		fits = fits or redis.pcall('HEXISTS', key, stage .. name) == 1
	end
	if there and fits and (tonumber(since) or 0) <= tonumber(ARGV[4]) then
		for i, name in ipairs(summed) do
			if ARGV[at + 2 + i] ~= '0' then redis.pcall('HINCRBY', key, stage .. name, ARGV[at + 2 + i]) end
		end
		local least = tonumber(redis.pcall('HGET', key, stage .. 'least'))
		if ARGV[at + 8] ~= '0' and (not least or tonumber(ARGV[at + 8]) < least) then
			redis.pcall('HSET', key, stage .. 'least', ARGV[at + 8])
		end
		local most = tonumber(redis.pcall('HGET', key, stage .. 'most')) or 0
		if tonumber(ARGV[at + 9]) > most then redis.pcall('HSET', key, stage .. 'most', ARGV[at + 9]) end
		local last = tonumber(redis.pcall('HGET', key, stage .. 'last_at'))
		if ARGV[at + 10] ~= '' and (not last or tonumber(ARGV[at + 10]) >= last) then
			redis.pcall('HSET', key, stage .. 'last_at', ARGV[at + 10], stage .. 'last', ARGV[at + 11])
		end
	end
end
return 'done'
