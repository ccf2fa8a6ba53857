package kafkastream

import "fmt"

// TooLargeError says that a message is larger than its topic takes. Nothing was produced
// and nothing committed: polled records are still their member's, which may commit with a
// smaller message in its place.
type TooLargeError struct {
	Message int // its index among those to produce, or that of its result among those to commit
	Stream  string
	Bytes   int // what it takes, at most
	Limit   int // max.message.bytes of the topic
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("message %d has %d bytes, and the topic %s takes %d: raise its max.message.bytes, or send less", e.Message, e.Bytes, e.Stream, e.Limit)
}

// TooLarge is the index, for those who do not know Kafka.
func (e *TooLargeError) TooLarge() (result int) { return e.Message }
