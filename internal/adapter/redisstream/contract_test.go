//go:build servers

package redisstream

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
)

var _ contract.StreamConsumer = (*Consumer)(nil)

func TestStream(t *testing.T) {
	suite(t, 1, false)
}

func TestOrderedStreams(t *testing.T) {
	suite(t, 4, true)
}

func suite(t *testing.T, count int, ordered bool) {
	const largest = 1 << 20
	contract.Stream(t, func(t *testing.T, private bool) contract.StreamBroker {
		server := shared.start(t)
		if private {
			server = own(t)
		}
		b := broker(t, server.Addr)
		var in []string
		for range count {
			in = append(in, fresh())
		}
		joinFor := func(b Broker, name string, takeover time.Duration) contract.StreamConsumer {
			c, err := Join(b, Group{Name: "group", Member: name, Streams: in, Takeover: takeover, Ordered: ordered, MaxMessageBytes: largest})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		return contract.StreamBroker{
			In: in, Out: []string{fresh(), fresh()}, Ordered: ordered, Takeover: takeover, Largest: largest,
			Join: func(name string, wire *contract.Wire) contract.StreamConsumer {
				wired := b
				wired.Dial = wire.Dial
				return joinFor(wired, name, takeover)
			},
			JoinFor: func(name string, takeover time.Duration) contract.StreamConsumer {
				return joinFor(b, name, takeover)
			},
			Silence: func(member contract.StreamConsumer) { member.(*Consumer).keeper.end() },
			Write:   func(messages []serving.StreamMessage) { write(t, b, messages...) },
			Read:    func(stream string) []serving.StreamRecord { return read(t, b, stream) },
			Restart: func() {
				server.Kill()
				if err := server.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			Library: "redis/go-redis",
		}
	})
}
