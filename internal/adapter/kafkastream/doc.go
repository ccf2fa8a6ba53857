// Package kafkastream consumes, produces and reads records of Kafka.
//
// A Consumer is a member of a consumer group that reads what is committed. Each Commit is
// one transaction of Kafka: it produces the results and commits the offsets, so that those
// who read committed records see each result once, whichever process dies when. Records may be
// committed in any order: the offset is that up to which all is done, and its metadata says what is done
// beyond it, which the next member that has the partition passes. When the group rebalances, the
// partitions that a member keeps (cooperative balancing) go on, with what is in flight of them; records of the
// others are lost to it, and come again to the members that they belong to then. A Commit has the generation of
// the group from before it looked whose the partitions are, so that a member that does not
// know yet that it has lost one is refused.
//
// The transactional id is GROUP/MEMBER. A member that starts again under its name ends at
// once what it left open; two that run under one name end each other's transactions, so a
// name must be of one process. Kafka must be 3.0 or later.
//
// All of this is as good as Kafka's own transactions. A Kafka that is one process, controller
// and broker at once, may forget to end a transaction when it is killed in the middle of it:
// until its broker has registered anew it takes partitions for deleted. Then results may come
// twice, or a partition may stand still. Controllers of their own, as Kafka asks for in
// production, are what helps.
//
// Topics are not created by using them: Broker.CreateTopic does.
package kafkastream
