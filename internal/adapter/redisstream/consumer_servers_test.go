//go:build servers

package redisstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Leases are spread evenly, and those of who leaves are taken over.
func TestLeasesAreSpread(t *testing.T) {
	t.Parallel()
	b := broker(t, shared.start(t).Addr)
	group := Group{Name: "group", Streams: []string{fresh(), fresh(), fresh(), fresh()}, Takeover: takeover, Ordered: true}
	members := map[string]*Consumer{}
	spread := func(want map[string]int) {
		t.Helper()
		for end := time.Now().Add(patience); ; {
			got, all := map[string]int{}, map[string]bool{}
			for name, c := range members {
				nothing(t, c)
				got[name] = len(c.leases.held)
				for _, stream := range c.leases.held {
					all[stream] = true
				}
			}
			if fmt.Sprint(got) == fmt.Sprint(want) && len(all) == len(group.Streams) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("held %v, want %v", got, want)
			}
		}
	}
	add := func(name string) {
		group.Member = name
		members[name] = join(t, b, group)
	}
	add("a")
	spread(map[string]int{"a": 4})
	add("b")
	spread(map[string]int{"a": 2, "b": 2})
	members["a"].Close()
	delete(members, "a")
	spread(map[string]int{"b": 4})
}

// A member that does not know yet that it has lost a lease reads nothing, and its successor
// has what it left.
func TestLostLease(t *testing.T) {
	t.Parallel()
	server := shared.start(t)
	b, in := broker(t, server.Addr), fresh()
	write(t, b, numbered(in, 2)...)
	group := Group{Name: "group", Member: "a", Streams: []string{in}, Takeover: 2 * patience, Ordered: true}
	a := join(t, b, group)
	late := poll(t, a, 1)
	group.Member = "b"
	successor := join(t, b, group)
	nothing(t, successor)
	if err := client(t, server).Del(t.Context(), a.leases.of(group.Streams)...).Err(); err != nil { // as time does
		t.Fatal(err)
	}
	successor.leases.renew = time.Time{}
	records := poll(t, successor, 1)
	if got := values(records); got[0] != "0" {
		t.Errorf("the successor has %v", got)
	}
	if err := try(t.Context(), a, late, nil); !errors.Is(err, serving.ErrRecordsLost) || !late[0].IsLost() {
		t.Errorf("error %v", err)
	}
	a.renew.Store(false)
	a.leases.renew = time.Now().Add(patience)
	nothing(t, a)
	if err := try(t.Context(), successor, records, nil); err != nil {
		t.Error(err)
	}
	if got := values(poll(t, successor, 1)); got[0] != "1" {
		t.Errorf("the successor has %v", got)
	}
}

// While Redis is frozen, Poll ends with its context, and Commit within its time.
func TestFrozen(t *testing.T) {
	t.Parallel()
	server := own(t)
	b, in, out := broker(t, server.Addr), fresh(), fresh()
	write(t, b, numbered(in, 10)...)
	c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{in}, Takeover: time.Second})
	records := poll(t, c, 5)
	server.Freeze()
	t.Cleanup(server.Thaw)
	began := time.Now()
	if err := try(t.Context(), c, records, numbered(out, len(records))); err == nil {
		t.Fatal("a frozen Redis commits")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Commit takes %v", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began = time.Now()
	if _, err := c.Poll(ctx, 5); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Poll: %v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Poll takes %v", took)
	}
	server.Thaw()
	// The commit may have come through when it thawed.
	committed := 0
	for committed < 10 {
		committed = len(read(t, b, out))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		records, err := c.Poll(ctx, 5)
		cancel()
		if err == nil {
			err = try(t.Context(), c, records, numbered(out, len(records)))
		}
		if err != nil && !errors.Is(err, serving.ErrRecordsLost) && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if committed != 10 {
		t.Errorf("%d results", committed)
	}
}

// However long a member works on a batch, it stays its own.
func TestALongBatch(t *testing.T) {
	t.Parallel()
	for _, ordered := range []bool{false, true} {
		t.Run(fmt.Sprintf("ordered %v", ordered), func(t *testing.T) {
			t.Parallel()
			b, in, out := broker(t, shared.start(t).Addr), []string{fresh(), fresh()}, fresh()
			for _, stream := range in {
				write(t, b, numbered(stream, 100)...)
			}
			group := Group{Name: "group", Member: "a", Streams: in, Takeover: 2 * takeover, Ordered: ordered}
			a := join(t, b, group)
			records := poll(t, a, 200)
			group.Member = "b"
			other := join(t, b, group)
			for end := time.Now().Add(3 * takeover); time.Now().Before(end); {
				nothing(t, other)
			}
			if err := try(t.Context(), a, records, numbered(out, len(records))); err != nil {
				t.Errorf("%d records: %v", len(records), err)
			}
		})
	}
}
