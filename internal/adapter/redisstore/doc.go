// Package redisstore keeps the state of a cluster in Redis: apps, models, versions,
// links, current versions and keys, the audit log, the lease of query ids, the decisions
// of schedulers, the wakes that gateways send them, and replies to requests that may be
// sent again. What changes may do is decided by
// serving/catalog. Redis may stand alone, behind Sentinels, or be a Cluster.
//
// The catalog is one hash, so that no part of it can be lost without the rest: a
// field for each catalog.Document, and its position, which is an epoch (drawn at
// random when the catalog is made), a revision, and the write that made the
// revision. Every change is one Lua script that compares the position, writes, and
// adds to a stream, which followers wait on; a change with an author also adds to
// the audit log, another stream. ADR 6 has the reasons.
//
// What selection policies have learned, and the records of answers, are keys of their
// own that spread over the nodes of a Cluster, and that expire. They are not part of
// the catalog and are read from Redis each time: nothing of them is kept here.
//
// Readers of the catalog never touch the network: they share the last good snapshot,
// which a file keeps for a start without Redis. A Store that finds less in Redis than
// it has seen there keeps its snapshot, raises an alarm and refuses to write, until
// Redis is back, or an operator calls Restore or Accept.
package redisstore
