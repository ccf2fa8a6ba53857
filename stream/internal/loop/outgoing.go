package loop

import "topsail/serving"

// outgoing is what is produced for a batch. Not every record gets a message, and the broker
// knows messages alone, so each stands beside its record.
type outgoing struct {
	messages []serving.StreamMessage
	records  []int // whose each message is, by its place in the batch
}

// outgoingOf is the messages of a batch of so many records, in their order.
func outgoingOf(b Batch, records int) outgoing {
	o := outgoing{make([]serving.StreamMessage, 0, records), make([]int, 0, records)}
	for record := range records {
		if m, some := b.Message(record); some {
			o.messages, o.records = append(o.messages, m), append(o.records, record)
		}
	}
	return o
}

// shorten has a message made shorter, if that can be and there is such a message.
func (o outgoing) shorten(b Batch, message int, why error) bool {
	return message >= 0 && message < len(o.records) && b.Shorten(o.records[message], why)
}
