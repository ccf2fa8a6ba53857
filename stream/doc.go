// Package stream serves predictions to streams of records: it consumes them, has an
// app predict each under its policy and SLO, and produces the results, every record
// paired with its result by its id. Kafka and Redis Streams are adapters elsewhere;
// what this package asks of them is a Consumer.
//
// A Job goes round: it polls records, decodes them, has all of them predicted side by
// side, and commits the results together with the records. What cannot be predicted
// becomes a dead letter with its reason, and the stream goes on. A record is done when
// its result, or its dead letter, is committed, and never before; so a crash at any
// moment loses nothing.
package stream
