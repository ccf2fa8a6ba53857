// Package stream consumes streams of records, and produces what came of each. Kafka and Redis
// Streams are adapters elsewhere; what this package asks of them is a Consumer. What is done
// about records is the work of a Handler: package records has them predicted, and package
// models deploys the models that they bring.
//
// A Job has a window of records in flight. It polls for as long as there is room, decodes records and has
// them handled, and commits the results together with the records as they come, again and again. A result
// waits for others only where it has to leave in an Order, so a slow record holds up those of its key and no
// others. What gets no result becomes a dead letter with its reason, and the stream goes on.
//
// A record is done when its result, or its dead letter, is committed, and never before; so a crash at any
// moment loses nothing. Records may be done before others that came earlier: it is for the Consumer to
// remember which, with the broker.
package stream
