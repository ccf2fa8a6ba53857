-- Moves the catalog from one position to the next; returns what became of it.
-- It may be repeated: the same write is made once.
-- KEYS: catalog, log, fence, audit log, then the usage of each app and version among the
-- fields.
-- ARGV: epoch, revision and write as they have to be, and as they become; the
-- fencing token or ''; how many changes to keep; 'clear' to drop all fields first;
-- how many entries the audit log is to keep, how many there are, the time in
-- milliseconds, and these entries; then fields and their values, '' to drop one.
local revision, write = ARGV[5], ARGV[6]
local there = redis.call('XRANGE', KEYS[2], revision .. '-0', revision .. '-0')[1]
if there and there[2][2] == write then return 'done' end

local at = redis.call('HMGET', KEYS[1], 'epoch', 'revision', 'write')
if (at[1] or '') ~= ARGV[1] then return 'moved' end
if ARGV[1] ~= '' and (at[2] ~= ARGV[2] or at[3] ~= ARGV[3]) then return 'moved' end
if ARGV[7] ~= '' and tonumber(ARGV[7]) < tonumber(redis.call('GET', KEYS[3]) or '0') then return 'fenced' end

-- A script that fails half-way is not undone. So the logs come first: a Redis that
-- takes no writes says so here. And first of them the audit log: should something
-- else be in its place, nothing is written at all.
local fields = 13 + ARGV[11]
for i = 13, fields - 1 do
	redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[10], '*', 'write', write, 'entry', ARGV[i])
end
if ARGV[4] ~= ARGV[1] then redis.call('DEL', KEYS[2]) end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[8], revision .. '-0', 'write', write)
if ARGV[7] ~= '' then redis.call('SET', KEYS[3], ARGV[7]) end
-- Usage begins with what it is of, and ends with it. It must not come between: should
-- something else be in its place, the catalog is written all the same.
local usage = 4
for i = fields, #ARGV, 2 do
	if string.find(ARGV[i], '^apps/') or string.find(ARGV[i], '^versions/') then
		usage = usage + 1
		local new = redis.call('HEXISTS', KEYS[1], ARGV[i]) == 0
		if new or ARGV[i + 1] == '' then redis.pcall('DEL', KEYS[usage]) end
		if new and ARGV[i + 1] ~= '' then redis.pcall('HSET', KEYS[usage], 'since', ARGV[12], 'revision', revision) end
	end
end
if ARGV[9] == 'clear' then redis.call('DEL', KEYS[1]) end
for i = fields, #ARGV, 2 do
	if ARGV[i + 1] == '' then
		redis.call('HDEL', KEYS[1], ARGV[i])
	else
		redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
	end
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[4], 'revision', revision, 'write', write)
return 'done'
