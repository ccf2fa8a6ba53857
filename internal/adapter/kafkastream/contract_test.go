package kafkastream

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
)

// TestContract has the suite run on a Kafka in memory; TestStream does on a real one.
func TestContract(t *testing.T) {
	contract.StreamInBubbles(t, func(t *testing.T, _ bool) contract.StreamBroker {
		f := newFake(t)
		b := streamBroker(t, f.broker)
		f.begin(t, b.In[0], b.Out[1])
		b.Churn = 2000 // reading all results again and again takes real time
		b.Restart = func() {
			f.set(closes)
			time.Sleep(time.Second)
			f.set(works)
		}
		return b
	})
}

// streamBroker is what the suite needs of a Kafka.
func streamBroker(t *testing.T, b Broker) contract.StreamBroker {
	in, out, other := fresh(t, b, 4, nil), fresh(t, b, 3, nil), fresh(t, b, 1, nil)
	joinFor := func(b Broker, name string, takeover time.Duration) contract.StreamConsumer {
		c, err := Join(b, Group{Name: in, Member: name, Streams: []string{in}, Takeover: takeover})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	return contract.StreamBroker{
		In: []string{in}, Out: []string{out, other}, Ordered: true, Takeover: takeover, Largest: 1 << 20,
		Join: func(name string, wire *contract.Wire) contract.StreamConsumer {
			wired := b
			wire.Via, wired.dial = b.dial, wire.Dial
			return joinFor(wired, name, takeover)
		},
		JoinFor: func(name string, takeover time.Duration) contract.StreamConsumer {
			return joinFor(b, name, takeover)
		},
		Write:   func(messages []serving.StreamMessage) { write(t, b, messages...) },
		Read:    func(stream string) []serving.StreamRecord { return read(t, b, stream) },
		Library: filepath.Join("twmb", "franz-go"),
	}
}
