-- Adds results and acknowledges the entries that they are of, if all of them are still
-- pending for the member. With leases they must also be all that is pending in their stream up
-- to the last of them: whoever held the lease when, results are in the order of their entries.
-- It may be repeated.
-- KEYS: the last commit of the member; the streams; with a token their leases, which are
-- renewed; the streams of the results.
-- ARGV: group, member, lease token or '', how long a lease is in ms, id of this commit, how
-- long to know it in ms, number of streams, most entries of a stream of results or 0, whether
-- to delete what is done ('1'); for each stream the number of its entries, and their ids in
-- order; for each result the index of its stream, the number of its fields' names and values,
-- and these.
local group, member, token, most, delete = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[8]), ARGV[9] == '1'
local streams = tonumber(ARGV[7])
local results = 1 + (token == '' and streams or 2 * streams) -- before the first of them
local at = 10

if redis.call('GET', KEYS[1]) == ARGV[5] then return 'done' end

local ids = {}
for i = 1, streams do
  local n = tonumber(ARGV[at])
  ids[i] = { unpack(ARGV, at + 1, at + n) }
  at = at + 1 + n
  local pending
  if token == '' then
    pending = redis.call('XPENDING', KEYS[1 + i], group, ids[i][1], ids[i][n], n, member)
  else
    pending = redis.call('XPENDING', KEYS[1 + i], group, '-', ids[i][n], n + 1)
  end
  if #pending ~= n then return 'lost' end
  for j, entry in ipairs(pending) do
    if entry[1] ~= ids[i][j] or entry[2] ~= member then return 'lost' end
  end
end
-- Redis does not undo a script that fails half-way: what could fail is tried first, or undone here.
for i = results + 1, #KEYS do
  local kind = redis.call('TYPE', KEYS[i]).ok
  if kind ~= 'stream' and kind ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' is a ' .. kind .. ', not a stream')
  end
end
local added = {}
while at <= #ARGV do
  local key, n = KEYS[results + tonumber(ARGV[at])], tonumber(ARGV[at + 1])
  local id
  if most > 0 then
    id = redis.pcall('XADD', key, 'MAXLEN', '~', most, '*', unpack(ARGV, at + 2, at + 1 + n))
  else
    id = redis.pcall('XADD', key, '*', unpack(ARGV, at + 2, at + 1 + n))
  end
  if type(id) == 'table' and id.err then
    for _, before in ipairs(added) do redis.call('XDEL', before[1], before[2]) end
    return id
  end
  added[#added + 1] = { key, id }
  at = at + 2 + n
end
for i = 1, streams do
  redis.call('XACK', KEYS[1 + i], group, unpack(ids[i]))
  if delete then redis.call('XDEL', KEYS[1 + i], unpack(ids[i])) end
  local lease = token ~= '' and KEYS[1 + streams + i]
  if lease and redis.call('GET', lease) == token then redis.call('PEXPIRE', lease, ARGV[4]) end
end
redis.call('SET', KEYS[1], ARGV[5], 'PX', ARGV[6])
return 'done'
