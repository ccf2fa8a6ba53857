// Package brokers writes to Kafka and Redis and reads from them past the adapters, for tests and benchmarks
// of streams. Records and messages are as the adapters have them.
package brokers
