package records

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
)

// memory is a broker in memory with one consumer group. It keeps what the contract
// promises, which its own test sees to.
type memory struct {
	inputs   []string
	takeover time.Duration // after which others have the records of a member that is silent
	largest  int           // bytes of a value

	mu      sync.Mutex
	streams map[string][]serving.StreamRecord
	done    map[position]bool
	first   map[string]int // the first record of an input that is not done, or one before it
	claims  map[position]claim
	changed chan struct{} // closed, and made anew, when there may be more to poll
}

// position is a record of an input.
type position struct {
	stream string
	index  int
}

type claim struct {
	by    *member
	until time.Time
	lost  chan struct{} // closed when it is another member's
}

func newMemory(inputs ...string) *memory {
	return &memory{
		inputs: inputs, takeover: time.Minute, largest: 1 << 20, streams: map[string][]serving.StreamRecord{},
		done: map[position]bool{}, first: map[string]int{}, claims: map[position]claim{}, changed: make(chan struct{}),
	}
}

func (m *memory) write(messages ...serving.StreamMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.appendLocked(messages)
}

func (m *memory) appendLocked(messages []serving.StreamMessage) {
	for _, one := range messages {
		m.streams[one.Stream] = append(m.streams[one.Stream], serving.StreamRecord{
			Stream: one.Stream, Place: fmt.Sprintf("0/%d", len(m.streams[one.Stream])),
			Key: one.Key, Value: one.Value, Headers: one.Headers, At: time.Now(),
		})
	}
	m.wakeLocked()
}

func (m *memory) wakeLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *memory) read(stream string) []serving.StreamRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.streams[stream])
}

// join makes a member that is in the same process.
func (m *memory) join() *member { return &member{broker: m} }

// member is a Consumer. By default nothing is between it and the broker.
type member struct {
	broker *memory
	closed bool
	fail   func(operation string) error // nil: nothing fails
}

func (c *member) failed(operation string) error {
	if c.fail == nil {
		return nil
	}
	return c.fail(operation)
}

// Poll implements Consumer.
func (c *member) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	if c.closed {
		return nil, errors.New("the member is closed")
	}
	if err := c.failed("poll"); err != nil {
		return nil, err
	}
	for {
		records, changed := c.broker.take(c, most)
		if len(records) > 0 {
			return records, nil
		}
		select {
		case <-changed:
		case <-time.After(c.broker.takeover / 4):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take gives a member the next records that nobody else has.
func (m *memory) take(c *member, most int) (records []serving.StreamRecord, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, stream := range m.inputs {
		for m.done[position{stream, m.first[stream]}] {
			m.first[stream]++
		}
		for i := m.first[stream]; i < len(m.streams[stream]) && len(records) < most; i++ {
			at, r := position{stream, i}, m.streams[stream][i]
			held, ok := m.claims[at]
			if m.done[at] || ok && (held.by == c || now.Before(held.until)) {
				continue
			}
			if ok {
				close(held.lost)
			}
			r.Lost = m.claimLocked(c, at, now)
			records = append(records, r)
		}
	}
	return records, m.changed
}

func (m *memory) claimLocked(c *member, at position, now time.Time) <-chan struct{} {
	lost := make(chan struct{})
	m.claims[at] = claim{c, now.Add(m.takeover), lost}
	return lost
}

// tooLarge implements TooLarge.
type tooLarge int

func (e tooLarge) Error() string { return fmt.Sprintf("message %d is too large", int(e)) }
func (e tooLarge) TooLarge() int { return int(e) }

// Lag implements Lagging.
func (c *member) Lag(context.Context) (records int64, err error) {
	m := c.broker
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, stream := range m.inputs {
		for i := range m.streams[stream] {
			if !m.done[position{stream, i}] {
				records++
			}
		}
	}
	return records, c.failed("lag")
}

// Commit implements Consumer.
func (c *member) Commit(_ context.Context, results []serving.StreamResult) ([]int, error) {
	if err := c.commit(results); err != nil {
		return nil, err
	}
	err := c.failed("committed")
	c.broker.settle(results, err != nil)
	return nil, err
}

// commit leaves it to settle who has the records, since the member may not hear of it.
func (c *member) commit(results []serving.StreamResult) error {
	if c.closed || len(results) == 0 {
		return errors.New("there are no records to commit")
	}
	for i, r := range results {
		if slices.ContainsFunc(r.Messages, c.broker.tooLarge) {
			return tooLarge(i)
		}
	}
	if err := c.failed("commit"); errors.Is(err, serving.ErrRecordsLost) {
		c.broker.release(c)
		return err
	} else if err != nil {
		return err
	}
	return c.broker.commit(c, results)
}

func (m *memory) tooLarge(message serving.StreamMessage) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(message.Value) > m.largest
}

func (m *memory) commit(c *member, results []serving.StreamResult) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var messages []serving.StreamMessage
	var all []position
	for _, r := range results {
		at := positionOf(r.Record)
		if r.Record.IsLost() {
			return serving.ErrRecordsLost
		}
		if held, is := m.claims[at]; !is || held.by != c {
			return fmt.Errorf("%s is not in flight", r.Record.Position())
		}
		all, messages = append(all, at), append(messages, r.Messages...)
	}
	for _, at := range all {
		m.done[at] = true
	}
	m.appendLocked(messages)
	return nil
}

func positionOf(r *serving.StreamRecord) position {
	_, text, _ := strings.Cut(r.Place, "/")
	index, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return position{r.Stream, index}
}

// settle forgets who had records that are committed. Where there is a doubt about that they are lost.
func (m *memory) settle(results []serving.StreamResult, doubt bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range results {
		at := positionOf(r.Record)
		if doubt {
			close(m.claims[at].lost)
		}
		delete(m.claims, at)
	}
}

// release takes back what a member has.
func (m *memory) release(c *member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, held := range m.claims {
		if held.by == c {
			delete(m.claims, at)
			close(held.lost)
		}
	}
	m.wakeLocked()
}

// Close implements Consumer.
func (c *member) Close() error {
	c.closed = true
	c.broker.release(c)
	return nil
}

// port is where members connect that may die. Every byte asks for one operation, and is
// answered with one.
type port struct {
	broker *memory

	mu      sync.Mutex
	ln      net.Listener
	conns   map[net.Conn]bool
	members []*wired // by their number, which is what a connection begins with
}

// open listens, on an address of before if there is one.
func (p *port) open(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ln, p.conns = ln, map[net.Conn]bool{}
	go p.accept(ln)
	return nil
}

func (p *port) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns[conn] = true
		p.mu.Unlock()
		go p.talk(conn)
	}
}

// close ends all connections, and takes no more.
func (p *port) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ln.Close()
	for conn := range p.conns {
		conn.Close()
	}
}

func (p *port) talk(conn net.Conn) {
	defer conn.Close()
	b := []byte{0}
	if _, err := conn.Read(b); err != nil {
		return
	}
	p.mu.Lock()
	c := p.members[b[0]]
	p.mu.Unlock()
	defer p.broker.release(c.member)
	for {
		if _, err := conn.Read(b); err != nil {
			return
		}
		select {
		case do := <-c.asked:
			do()
		default: // it was taken back
		}
		if _, err := conn.Write(b); err != nil {
			return
		}
	}
}

// join makes a member whose connections are made by wire.
func (p *port) join(wire *contract.Wire) *wired {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &wired{member: p.broker.join(), port: p, wire: wire, number: byte(len(p.members)), asked: make(chan func(), 1)}
	p.members = append(p.members, c)
	return c
}

// wired is a member behind a connection.
type wired struct {
	*member
	port   *port
	wire   *contract.Wire
	number byte
	asked  chan func()
	conn   net.Conn
}

// exchange has the broker do something, and says whether it is certain that it did.
func (c *wired) exchange(ctx context.Context, do func()) error {
	if err := c.connect(ctx); err != nil {
		return err
	}
	finished := make(chan struct{})
	c.asked <- func() { do(); close(finished) }
	_, err := c.conn.Write([]byte{1})
	if err == nil {
		_, err = c.conn.Read([]byte{0})
	}
	if err == nil {
		return nil
	}
	c.conn.Close()
	c.conn = nil
	select {
	case <-c.asked:
	case <-finished:
	}
	return err
}

// connect makes the connection, if there is none.
func (c *wired) connect(ctx context.Context) error {
	for c.conn == nil {
		c.port.mu.Lock()
		addr := c.port.ln.Addr().String()
		c.port.mu.Unlock()
		conn, err := c.wire.Dial(ctx, "tcp", addr)
		if err == nil {
			c.conn = conn
			if _, err = conn.Write([]byte{c.number}); err == nil {
				return nil
			}
			c.conn = nil
		}
		select {
		case <-time.After(5 * time.Millisecond): // the tick of a poll
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Lag implements Lagging. It has a connection of its own, which ends at once.
func (c *wired) Lag(ctx context.Context) (int64, error) {
	c.port.mu.Lock()
	addr := c.port.ln.Addr().String()
	c.port.mu.Unlock()
	conn, err := c.wire.Dial(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	conn.Close()
	return c.member.Lag(ctx)
}

// Poll implements Consumer.
func (c *wired) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	for !c.closed && c.exchange(ctx, func() {}) != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return c.member.Poll(ctx, most)
}

// Commit implements Consumer.
func (c *wired) Commit(ctx context.Context, results []serving.StreamResult) ([]int, error) {
	if c.closed || len(results) == 0 {
		return c.member.Commit(ctx, results)
	}
	var committed error
	if err := c.exchange(ctx, func() { committed = c.member.commit(results) }); err != nil {
		c.broker.release(c.member) // what it has is lost, for it may be committed
		return nil, fmt.Errorf("the broker does not answer: %w", err)
	}
	if committed == nil {
		c.broker.settle(results, false)
	}
	return nil, committed
}

// Close implements Consumer.
func (c *wired) Close() error {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
	return c.member.Close()
}

var (
	_ stream.Consumer         = (*member)(nil)
	_ stream.Lagging          = (*member)(nil)
	_ contract.StreamConsumer = (*wired)(nil)
)

// TestMemory holds the broker of our tests to what real ones are held to.
func TestMemory(t *testing.T) {
	contract.Stream(t, func(t *testing.T, _ bool) contract.StreamBroker {
		m := newMemory("in")
		m.takeover = 2 * time.Second
		p := &port{broker: m}
		require.NoError(t, p.open("127.0.0.1:0"))
		t.Cleanup(p.close)
		return contract.StreamBroker{
			In: []string{"in"}, Out: []string{"out", "other"}, Takeover: m.takeover, Largest: m.largest,
			Join:  func(_ string, wire *contract.Wire) contract.StreamConsumer { return p.join(wire) },
			Write: func(messages []serving.StreamMessage) { m.write(messages...) },
			Read:  m.read,
			Restart: func() {
				addr := p.ln.Addr().String()
				p.close()
				if err := p.open(addr); err != nil {
					t.Error(err)
				}
			},
			Library: "(*port).talk",
		}
	})
}
