package redisstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/serving"
)

// numbered are n messages to a stream.
func numbered(stream string, n int) []serving.StreamMessage {
	messages := make([]serving.StreamMessage, n)
	for i := range messages {
		messages[i] = serving.StreamMessage{Stream: stream, Value: fmt.Append(nil, i)}
	}
	return messages
}

func poll(t *testing.T, c *Consumer, most int) []serving.StreamRecord {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	records, err := c.Poll(ctx, most)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// nothing wants a Poll to wait in vain.
func nothing(t *testing.T, c *Consumer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if records, err := c.Poll(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%d records, error %v", len(records), err)
	}
}

func values(records []serving.StreamRecord) []string {
	var list []string
	for _, r := range records {
		list = append(list, string(r.Value))
	}
	return list
}

// A commit whose answer is lost is done once, and known to be done.
func TestCommitIsRepeated(t *testing.T) {
	t.Parallel()
	b, in, out := broker(t, shared.start(t).Addr), fresh(), fresh()
	write(t, b, numbered(in, 5)...)
	var deaf atomic.Bool
	b.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, network, addr)
		return &deafConn{conn, &deaf}, err
	}
	c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{in}})
	records := poll(t, c, 10)
	deaf.Store(true)
	if err := try(t.Context(), c, records, numbered(out, len(records))); err != nil {
		t.Fatal(err)
	}
	if deaf.Load() {
		t.Fatal("no answer was lost")
	}
	if n := len(read(t, b, out)); n != len(records) {
		t.Errorf("%d results of %d", n, len(records))
	}
	nothing(t, c)
}

// Records whose Poll got no answer come before all others, also where the client library
// repeats the call by itself.
func TestPollWithoutAnswer(t *testing.T) {
	t.Parallel()
	for _, ordered := range []bool{false, true} {
		b, in := broker(t, shared.start(t).Addr), fresh()
		write(t, b, numbered(in, 9)...)
		var deaf atomic.Bool
		b.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, network, addr)
			return &deafConn{conn, &deaf}, err
		}
		c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{in}, Ordered: ordered})
		var got []string
		for range 3 {
			records := poll(t, c, 3)
			got = append(got, values(records)...)
			if err := try(t.Context(), c, records, nil); err != nil {
				t.Fatal(err)
			}
			deaf.Store(len(got) == 3)
		}
		if want := values(read(t, b, in)); deaf.Load() || !slices.Equal(got, want) {
			t.Errorf("ordered %v: there come %v, an answer was not lost: %v", ordered, got, deaf.Load())
		}
	}
}

// deafConn loses one answer and the connection with it.
type deafConn struct {
	net.Conn
	deaf *atomic.Bool
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.CompareAndSwap(true, false) {
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// An entry that is deleted while it is pending is done.
func TestDeletedWhilePending(t *testing.T) {
	t.Parallel()
	server := shared.start(t)
	b, in := broker(t, server.Addr), fresh()
	write(t, b, numbered(in, 4)...)
	group := Group{Name: "group", Member: "a", Streams: []string{in}}
	first := join(t, b, group)
	records := poll(t, first, 10)
	for _, r := range records[:2] {
		if err := client(t, server).XDel(t.Context(), in, r.Place).Err(); err != nil {
			t.Fatal(err)
		}
	}
	again := join(t, b, group)
	rest := poll(t, again, 10)
	if got := values(rest); !slices.Equal(got, []string{"2", "3"}) {
		t.Fatalf("there come %v", got)
	}
	if err := try(t.Context(), again, rest, nil); err != nil {
		t.Fatal(err)
	}
	if n := client(t, server).XPending(t.Context(), in, "group").Val().Count; n != 0 {
		t.Errorf("%d are pending", n)
	}
	if err := try(t.Context(), first, records, nil); !errors.Is(err, serving.ErrRecordsLost) {
		t.Errorf("of what another process has done: %v", err)
	}
}

func TestDeleteAndMaxLen(t *testing.T) {
	t.Parallel()
	server := shared.start(t)
	b, in, out := broker(t, server.Addr), fresh(), fresh()
	write(t, b, numbered(in, 900)...)
	c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{in}, Delete: true, MaxLen: 100})
	for done := 0; done < 900; {
		records := poll(t, c, 100)
		if err := try(t.Context(), c, records, numbered(out, len(records))); err != nil {
			t.Fatal(err)
		}
		done += len(records)
	}
	if n := client(t, server).XLen(t.Context(), in).Val(); n != 0 {
		t.Errorf("%d of the records are left", n)
	}
	if n := client(t, server).XLen(t.Context(), out).Val(); n < 100 || n > 300 {
		t.Errorf("%d results are kept", n)
	}
}

// A group that somebody deletes is made again, and begins at the beginning.
func TestGroupIsMadeAgain(t *testing.T) {
	t.Parallel()
	server := shared.start(t)
	b, in := broker(t, server.Addr), fresh()
	write(t, b, numbered(in, 3)...)
	c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{in}})
	records := poll(t, c, 10)
	if err := client(t, server).XGroupDestroy(t.Context(), in, "group").Err(); err != nil {
		t.Fatal(err)
	}
	if err := try(t.Context(), c, records, nil); err == nil || !records[0].IsLost() {
		t.Fatal("committed in a group that does not exist")
	}
	if n := len(poll(t, c, 10)); n != 3 {
		t.Errorf("%d records", n)
	}
}

// A result that cannot be added leaves no other one behind.
func TestNoHalfCommit(t *testing.T) {
	t.Parallel()
	server := shared.start(t)
	admin := client(t, server)
	for name, test := range map[string]struct{ forbid, allow func(out string) error }{
		"not a stream": {
			func(out string) error { return admin.Set(t.Context(), out, "text", 0).Err() },
			func(out string) error { return admin.Del(t.Context(), out).Err() },
		},
		"not allowed": {
			func(out string) error {
				return admin.Do(t.Context(), "ACL", "SETUSER", "half", "reset", "on", ">secret", "+@all", "~"+out+"-good", "~"+out+"-in", "~{*").Err()
			},
			func(out string) error { return admin.Do(t.Context(), "ACL", "SETUSER", "half", "~*").Err() },
		},
	} {
		bad := fresh()
		good, in := bad+"-good", bad+"-in"
		b := broker(t, server.Addr)
		write(t, b, numbered(in, 2)...)
		if err := test.forbid(bad); err != nil {
			t.Fatal(err)
		}
		if name == "not allowed" {
			b.Username, b.Password = "half", func() (string, error) { return "secret", nil }
		}
		c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{in}})
		records := poll(t, c, 10)
		results := slices.Concat(numbered(good, 2), numbered(bad, 1))
		if err := try(t.Context(), c, records, results); err == nil || !strings.Contains(err.Error(), "commit: ") {
			t.Errorf("%s: %v", name, err)
		}
		if n := admin.XLen(t.Context(), good).Val(); n != 0 {
			t.Errorf("%s: %d results of half a commit", name, n)
		}
		if err := test.allow(bad); err != nil {
			t.Fatal(err)
		}
		if err := try(t.Context(), c, records, results); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := admin.XLen(t.Context(), good).Val(); n != 2 {
			t.Errorf("%s: %d results", name, n)
		}
	}
}

// Redis may come back without the last commit. Then its records are before those in flight.
func TestForgottenCommit(t *testing.T) {
	t.Parallel()
	server := shared.start(t)
	b, in := broker(t, server.Addr), fresh()
	write(t, b, numbered(in, 3)...)
	c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{in}, Ordered: true})
	first := poll(t, c, 1)
	if err := try(t.Context(), c, first, nil); err != nil {
		t.Fatal(err)
	}
	second := poll(t, c, 1)
	if err := client(t, server).Do(t.Context(), "XCLAIM", in, "group", "a", 0, first[0].Place, "FORCE", "JUSTID").Err(); err != nil {
		t.Fatal(err)
	}
	if err := try(t.Context(), c, second, nil); !errors.Is(err, serving.ErrRecordsLost) || !second[0].IsLost() {
		t.Errorf("a commit over what is before it: %v", err)
	}
	both := poll(t, c, 10)
	if got := values(both); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("there come %v", got)
	}
	if err := try(t.Context(), c, both, nil); err != nil {
		t.Error(err)
	}
}

// The time that a batch may take begins when it is polled.
func TestTimeBeginsWithPoll(t *testing.T) {
	t.Parallel()
	server := shared.start(t)
	b, in := broker(t, server.Addr), fresh()
	write(t, b, numbered(in, 3)...)
	admin := client(t, server)
	group := Group{Name: "group", Member: "a", Streams: []string{in}, Takeover: 2 * patience}

	first := poll(t, join(t, b, group), 10)[0].Place
	if err := admin.Do(t.Context(), "XCLAIM", in, "group", "a", 0, first, "IDLE", 3*patience.Milliseconds(), "JUSTID").Err(); err != nil {
		t.Fatal(err)
	}
	poll(t, join(t, b, group), 10)
	pending, err := admin.XPendingExt(t.Context(), &redis.XPendingExtArgs{Stream: in, Group: "group", Start: first, End: first, Count: 1}).Result()
	if err != nil || pending[0].Idle > patience {
		t.Errorf("pending %+v, error %v", pending, err)
	}

	group.Name, group.Ordered = "ordered", true
	c := join(t, b, group)
	if err := try(t.Context(), c, poll(t, c, 1), nil); err != nil {
		t.Fatal(err)
	}
	lease := c.leases.of(group.Streams)[0]
	if err := admin.PExpire(t.Context(), lease, patience).Err(); err != nil {
		t.Fatal(err)
	}
	poll(t, c, 1)
	if left := admin.PTTL(t.Context(), lease).Val(); left <= patience {
		t.Errorf("a lease has %v", left)
	}
}

func TestCheck(t *testing.T) {
	good := Broker{Server: redisclient.Server{Addrs: []string{"127.0.0.1:1"}}, Log: logger(t)}
	group := Group{Name: "group", Member: "a", Streams: []string{"s"}}
	for want, change := range map[string]func(*Broker, *Group){
		"needs an address":         func(b *Broker, _ *Group) { b.Addrs = nil },
		"not both":                 func(b *Broker, _ *Group) { b.Cluster, b.Master = true, "m" },
		"needs a name":             func(_ *Broker, g *Group) { g.Name = "" },
		"its member one":           func(_ *Broker, g *Group) { g.Member = "" },
		"without slashes":          func(_ *Broker, g *Group) { g.Member = "a/b" },
		"needs streams":            func(_ *Broker, g *Group) { g.Streams = nil },
		"given twice":              func(_ *Broker, g *Group) { g.Streams = []string{"s", "t", "s"} },
		"at the least, not 1ms":    func(_ *Broker, g *Group) { g.Takeover = time.Millisecond },
		"cannot be negative":       func(_ *Broker, g *Group) { g.MaxLen = -1 },
		`hash tag, such as {wine}`: func(b *Broker, g *Group) { b.Cluster, g.Streams = true, []string{"s", "t"} },
	} {
		b, g := good, group
		change(&b, &g)
		if c, err := Join(b, g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, error %v, want %q", c, err, want)
		}
	}
}

// A message with more headers than a script can pass on is too large, too.
func TestTooManyHeaders(t *testing.T) {
	t.Parallel()
	b, in := broker(t, shared.start(t).Addr), fresh()
	message := serving.StreamMessage{Stream: in, Headers: make([]serving.StreamHeader, mostHeaders)}
	write(t, b, message, message)
	c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{in}})
	records := poll(t, c, 2)
	if n := len(records[0].Headers); n != mostHeaders {
		t.Errorf("%d headers", n)
	}
	tooMany := message
	tooMany.Headers = make([]serving.StreamHeader, mostHeaders+1)
	err := try(t.Context(), c, records, []serving.StreamMessage{message, tooMany})
	if large, ok := errors.AsType[*TooLargeError](err); !ok || large.TooLarge() != 1 {
		t.Errorf("error %v", err)
	}
	if err := try(t.Context(), c, records, []serving.StreamMessage{message}); err != nil {
		t.Error(err)
	}
}

// A batch ends when it is large, not only when it has many records.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	b, in := broker(t, shared.start(t).Addr), fresh()
	for range 4 {
		messages := numbered(in, 64)
		for i := range messages {
			messages[i].Value = make([]byte, mostBytes/64)
		}
		write(t, b, messages...)
	}
	c := join(t, b, Group{Name: "group", Member: "a", Streams: []string{in}})
	if n := len(poll(t, c, 1000)); n != 64 {
		t.Errorf("%d records", n)
	}
}
