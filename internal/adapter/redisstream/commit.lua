-- Adds results and acknowledges the entries that they are of, if all of them are still
-- pending for the member. With leases, what the member has in flight up to the last of them must also be all that is pending
-- there: whichever member held the lease, it has had what comes before.
-- It may be repeated.
-- KEYS: the last commit of the member; the streams; with a token their leases, which are
-- renewed; the streams of the results.
-- ARGV: group, member, lease token or '', how long a lease is in ms, id of this commit, how
-- long to know it in ms, number of streams, most entries of a stream of results or 0, whether
-- to delete what is done ('1'); for each stream the number of its entries, and these in
-- order: the id, and whether it is done ('1') or, with a token, just in flight; for each result the index of
-- its stream, the number of its fields' names and values, and these.
-- Returns 'done', or for each stream of which entries are lost its index with their ids; all are without any.
local group, member, token, most, delete = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[8]), ARGV[9] == '1'
local streams = tonumber(ARGV[7])
local results = 1 + (token == '' and streams or 2 * streams) -- before the first of them
local at = 10

if redis.call('GET', KEYS[1]) == ARGV[5] then return 'done' end

-- What is pending from an entry to another one, for the member or, with leases, for all.
local function pending(stream, first, last)
  local all, from = {}, first
  repeat
    local some
    if token == '' then
      some = redis.call('XPENDING', stream, group, from, last, 1000, member)
    else
      some = redis.call('XPENDING', stream, group, from, last, 1000)
    end
    for _, entry in ipairs(some) do
      all[#all + 1] = entry
      from = '(' .. entry[1]
    end
  until #some < 1000
  return all
end

local done, lost = {}, {}
for i = 1, streams do
  local n = tonumber(ARGV[at])
  local first, last = ARGV[at + 1], ARGV[at + 2 * n - 1]
  local all, missing = pending(KEYS[1 + i], token == '' and first or '-', last), { i }
  local ours = {}
  for _, entry in ipairs(all) do ours[entry[1]] = entry[2] == member end
  done[i] = {}
  for j = 1, n do
    local id = ARGV[at + 2 * j - 1]
    if not ours[id] then missing[#missing + 1] = id end
    if ARGV[at + 2 * j] == '1' then done[i][#done[i] + 1] = id end
  end
  if token ~= '' and (#missing > 1 or #all ~= n) then
    lost[#lost + 1] = { i }
  elseif #missing > 1 then
    lost[#lost + 1] = missing
  end
  at = at + 1 + 2 * n
end
if #lost > 0 then return lost end
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
  redis.call('XACK', KEYS[1 + i], group, unpack(done[i]))
  if delete then redis.call('XDEL', KEYS[1 + i], unpack(done[i])) end
  local lease = token ~= '' and KEYS[1 + streams + i]
  if lease and redis.call('GET', lease) == token then redis.call('PEXPIRE', lease, ARGV[4]) end
end
redis.call('SET', KEYS[1], ARGV[5], 'PX', ARGV[6])
return 'done'
