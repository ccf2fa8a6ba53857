// Package redisstream consumes, produces and reads entries of Redis Streams. Redis must be
// 7.0 or later; it may stand alone, behind Sentinels, or be a Cluster.
//
// A record is an entry: its field "key" is the key, "value" the value, and all others are
// headers, in their order. Only the first field of each of these two names counts, so that
// headers may have them too.
//
// A Consumer is a member of a consumer group of Redis. What it polls is pending for it until
// it commits. Each Commit is one script: it sees that all records are still pending for the
// member, adds the results, and acknowledges the records. Nothing of it happens where they
// are not, and a script is in the append-only file as a whole or not at all, so each record
// has one result also when the member or Redis dies. The answer to a script may be lost; the
// script is then repeated, and knows itself by a random id that it left behind.
//
// A member knows what it has in flight. What else is pending for it comes before anything new, wherever there may be
// something: at the start, after an error, and with Ordered now and then. An answer to Poll
// that is lost does no harm therefore; the client library does not repeat a Poll.
//
// A member that has records in flight says so again and again, however long it takes from Poll
// to Commit. One that is silent for the group's Takeover, because it is dead, stands still or
// is cut off, loses them to others. Without Ordered all members take from all streams, and
// records of one key may be with two members at once.
//
// With Ordered a stream is with one member at a time, by a lease that the script which reads
// checks, and all that is pending in the stream is that member's, whichever it was given to. The
// order does not rest on the lease: a Commit is refused unless the member has in flight all that is pending
// before its last record. Streams are spread over the members, of which no more than there are
// streams have work.
//
// A member that comes under its name again has its records and its leases at once. Two that run
// under one name take them from each other, so a name must be of one process.
//
// In a Redis Cluster a script works on one hash slot. The streams of a group and those of its
// results must have names with the same hash tag, such as {wine}:in and {wine}:out, and are on
// one node. Other keys, of leases and of the last commit of each member, are named after the
// streams.
//
// Redis without an append-only file, or with one that is synced once a second, may forget
// what was committed when it dies, results and acknowledgements together: records are redelivered.
//
// Redis 7 that dies while it writes a commit to its file cuts that off in the middle when it
// starts, does nothing of it, but leaves its beginning in the file. When it starts once more,
// that is carried out, too, and results are there twice. So redis-check-aof --fix should run
// before a Redis starts, which cuts off all of it, or BGREWRITEAOF after.
package redisstream
