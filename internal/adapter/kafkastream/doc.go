// Package kafkastream consumes, produces and reads records of Kafka.
//
// A Consumer is a member of a consumer group that reads what is committed. Each Commit is
// one transaction of Kafka: it produces the results and commits the offsets, so that those
// who read committed records see each result once, whichever process dies when. When the group
// rebalances between Poll and Commit, the transaction is aborted, and the records come
// again to the members that they belong to then. Members keep the partitions that they need not give up
// (cooperative balancing).
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
