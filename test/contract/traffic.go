package contract

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// TrafficKeeper is the seam of where the past of the charts lies; package traffic says what it
// promises.
type TrafficKeeper interface {
	LoadTraffic(ctx context.Context) ([]byte, error)
	SaveTraffic(ctx context.Context, past []byte) error
}

// Traffic runs the suite. open makes an empty keeper: another returns it as a process that
// starts later has it, or where it is shared, one beside it.
func Traffic(t *testing.T, shared bool, open func(t *testing.T) (another func() TrafficKeeper)) {
	tests := []struct {
		name   string
		shared bool // for keepers of several processes alone
		run    func(k traffic)
	}{
		{"nothing", false, traffic.nothing},
		{"kept", false, traffic.kept},
		{"replaced", false, traffic.replaced},
		{"the largest", false, traffic.largest},
		{"two processes in turn", true, traffic.turns},
		{"two processes at once", true, traffic.once},
	}
	for _, test := range tests {
		if test.shared && !shared {
			continue
		}
		t.Run(test.name, func(t *testing.T) { test.run(traffic{t, open(t)}) })
	}
}

type traffic struct {
	*testing.T
	another func() TrafficKeeper
}

// past is some text of n bytes, zeros among them, that is always the same for a seed.
func (k traffic) past(seed uint64, n int) []byte {
	text := make([]byte, n)
	random := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = random.Read(text) // it never fails
	return text
}

func (k traffic) save(to TrafficKeeper, past []byte) {
	k.Helper()
	require.NoError(k, to.SaveTraffic(k.Context(), past))
}

func (k traffic) finds(in TrafficKeeper, want []byte) {
	k.Helper()
	got, err := in.LoadTraffic(k.Context())
	require.NoError(k, err)
	if !bytes.Equal(got, want) || (got == nil) != (want == nil) {
		k.Fatalf("it has %d bytes, and not the %d that were saved", len(got), len(want))
	}
}

func (k traffic) nothing() { k.finds(k.another(), nil) }

// kept: who starts later finds it, and whoever changes what was found changes nothing.
func (k traffic) kept() {
	one, text := k.another(), k.past(1, 1000)
	k.save(one, text)
	k.finds(one, text)
	found, err := one.LoadTraffic(k.Context())
	require.NoError(k, err)
	clear(found)
	k.finds(k.another(), text)
}

func (k traffic) replaced() {
	one := k.another()
	k.save(one, k.past(1, 1000))
	k.save(one, k.past(2, 10))
	k.finds(k.another(), k.past(2, 10))
}

// largest is what a collector keeps at most.
func (k traffic) largest() {
	one, text := k.another(), k.past(1, 8<<20)
	k.save(one, text)
	k.finds(k.another(), text)
}

// turns: each finds what the other saved last.
func (k traffic) turns() {
	one, other := k.another(), k.another()
	for i := range uint64(3) {
		k.save(one, k.past(2*i, 100))
		k.finds(other, k.past(2*i, 100))
		k.save(other, k.past(2*i+1, 200))
		k.finds(one, k.past(2*i+1, 200))
	}
}

// once: of what is saved at the same time one is there, as a whole.
func (k traffic) once() {
	keepers := []TrafficKeeper{k.another(), k.another()}
	var texts [][]byte
	for i := range uint64(20) {
		texts = append(texts, k.past(i, 50_000))
	}
	var all sync.WaitGroup
	for i, text := range texts {
		all.Go(func() {
			keeper := keepers[i%2]
			if err := keeper.SaveTraffic(k.Context(), text); err != nil {
				k.Error(err)
			}
			found, err := keeper.LoadTraffic(k.Context())
			if err != nil || !slices.ContainsFunc(texts, func(t []byte) bool { return bytes.Equal(t, found) }) {
				k.Error(fmt.Errorf("what is found was saved by nobody: %d bytes, error %w", len(found), err))
			}
		})
	}
	all.Wait()
}
