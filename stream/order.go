package stream

import "fmt"

// Order is which results wait for others, though they are there.
type Order uint8

const (
	OrderKey       Order = iota // those of records with one key leave in the order of their partition, others wait for none
	OrderPartition              // those of a partition leave in its order
	OrderNone                   // none waits
)

var orderNames = [...]string{"key", "partition", "none"}

func (o Order) String() string {
	if int(o) < len(orderNames) {
		return orderNames[o]
	}
	return fmt.Sprintf("Order(%d)", uint8(o))
}

// MarshalText and UnmarshalText let an Order stand in JSON and TOML by name.
func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

func (o *Order) UnmarshalText(b []byte) error {
	for i, name := range orderNames {
		if string(b) == name {
			*o = Order(i)
			return nil
		}
	}
	return fmt.Errorf("order %q is unknown: use key, partition or none", b)
}

// sequence is what results leave in the order of.
type sequence struct{ stream, partition, key string }

// of is the sequence of an item; false: its result waits for none.
func (o Order) of(it *Item) (sequence, bool) {
	r := it.Record
	s := sequence{stream: r.Stream, partition: r.Partition()}
	switch {
	case o == OrderPartition:
	case o == OrderKey && len(r.Key) > 0:
		s.key = string(r.Key)
	default:
		return sequence{}, false
	}
	return s, true
}
