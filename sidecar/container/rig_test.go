package container

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// peer is the other end of a session: a container that does as the test says.
type peer struct {
	nc    net.Conn
	conn  *rpc.Conn
	asked chan predict  // the batches that it was sent
	stuck chan struct{} // when set, it reads no further until this is closed
}

// predict is a PREDICT frame taken apart.
type predict struct {
	rpc.PredictHead
	asks []rpc.Ask
}

// rig is a session and its peer, on a pipe, in a synctest bubble.
type rig struct {
	t       *testing.T
	session *Session
	peer    *peer
	events  []string
	metrics []rpc.Metric
	refuse  error // what the sidecar says to an announcement
	stop    context.CancelFunc
	ended   chan struct{}
	why     error // of Run, once ended is closed
}

func newRig(t *testing.T, maxFrame uint32) *rig {
	return newRigWith(t, maxFrame, func(ctx context.Context, p *peer) { p.conn.Run(ctx, p.handle) })
}

// newMuteRig has a peer that takes everything and says nothing for so long.
func newMuteRig(t *testing.T, d time.Duration) *rig {
	return newRigWith(t, rpc.MaxFrame, func(ctx context.Context, p *peer) {
		p.nc.SetReadDeadline(time.Now().Add(d))
		io.Copy(io.Discard, p.nc)
		p.nc.SetReadDeadline(time.Time{})
		p.conn.Run(ctx, p.handle)
	})
}

func newRigWith(t *testing.T, maxFrame uint32, run func(context.Context, *peer)) *rig {
	r := &rig{t: t, ended: make(chan struct{})}
	near, far := net.Pipe()
	var accepted *rpc.Conn
	var wg sync.WaitGroup
	wg.Go(func() {
		var err error
		if accepted, err = rpc.Accept(t.Context(), near, rpc.Hello{Role: rpc.RoleSidecar, MaxFrame: rpc.MaxFrame}, nil); err != nil {
			t.Error(err)
		}
	})
	dialled, err := rpc.Connect(t.Context(), far, rpc.Hello{Role: rpc.RoleContainer, MaxFrame: maxFrame})
	if wg.Wait(); err != nil {
		t.Fatal(err)
	}
	r.peer = &peer{nc: far, conn: dialled, asked: make(chan predict, 100)}
	r.session = NewSession(accepted, Events{
		Announced: func([]rpc.Announcement) error { r.events = append(r.events, "announced"); return r.refuse },
		Draining:  func() { r.events = append(r.events, "draining") },
		Metrics:   func(list []rpc.Metric) { r.metrics = append(r.metrics, list...) },
	})
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go run(ctx, r.peer)
	go func() {
		defer close(r.ended)
		r.why = r.session.Run(ctx)
	}()
	t.Cleanup(func() { stop(); far.Close() })
	return r
}

func (p *peer) handle(f rpc.Frame) error {
	if p.stuck != nil {
		<-p.stuck
	}
	if f.Kind != rpc.KindPredict {
		return nil
	}
	in, err := rpc.ParsePredict(f)
	if err != nil {
		return err
	}
	got := predict{PredictHead: in.PredictHead}
	var ask rpc.Ask
	for in.Next(&ask) {
		ask.Payload = slices.Clone(ask.Payload)
		got.asks = append(got.asks, ask)
	}
	p.asked <- got
	return in.Err()
}

// reply sends answers, and END when the batch is done.
func (p *peer) reply(batch uint64, end bool, answers ...rpc.Answer) {
	var flags rpc.Flags
	if end {
		flags = rpc.FlagEnd
	}
	p.send(batch, len(answers), flags, answers)
}

// send sends a REPLY whose count may be a lie.
func (p *peer) send(batch uint64, count int, flags rpc.Flags, answers []rpc.Answer) {
	b := rpc.AppendReplyHead(nil, rpc.ReplyHead{Batch: batch, Count: count})
	for i := range answers {
		b = rpc.AppendAnswer(b, &answers[i])
	}
	p.conn.Send(rpc.KindReply, flags, b)
}

// echo answers every input of a batch with the input itself.
func (p *peer) echo(in predict) {
	p.reply(in.Batch, true, echoes(in)...)
}

func echoes(in predict) []rpc.Answer {
	var answers []rpc.Answer
	for i, ask := range in.asks {
		answers = append(answers, rpc.Answer{Index: uint32(i), Payload: ask.Payload})
	}
	return answers
}

// client gets the answers to items, and checks that each gets only its own.
type client struct {
	t       *testing.T
	mu      sync.Mutex
	answers map[*queue.Item][]rpc.Answer
}

func newClient(t *testing.T) *client { return &client{t: t, answers: map[*queue.Item][]rpc.Answer{}} }

func (c *client) Answer(it *queue.Item, a *rpc.Answer) {
	if a.Status == rpc.StatusOK && string(a.Payload) != string(it.Ask.Payload) {
		c.t.Errorf("item %d got the output of another", it.Index)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := *a
	kept.Payload, kept.Message = slices.Clone(a.Payload), slices.Clone(a.Message)
	c.answers[it] = append(c.answers[it], kept)
}

// items makes n items, each tagged by an input of size bytes or more.
func (c *client) items(n, size int) []*queue.Item {
	var items []*queue.Item
	for i := range n {
		input := serving.Value{DType: serving.Opaque, Data: append([]byte{byte(i), byte(i >> 8)}, make([]byte, size)...)}
		now := time.Now()
		items = append(items, &queue.Item{Arrived: now, Deadline: now.Add(10 * time.Second), Index: uint32(1000 + i), From: c, Ask: rpc.Ask{Payload: rpc.AppendPayload(nil, input)}})
	}
	return items
}

// last is the last answer to an item, of which there must be one.
func (c *client) last(it *queue.Item) rpc.Answer {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.answers[it]
	ends := 0
	for _, a := range list {
		if !a.More {
			ends++
		}
	}
	if ends != 1 || list[len(list)-1].More {
		c.t.Errorf("item %d got %d last answers of %d", it.Index, ends, len(list))
		return rpc.Answer{}
	}
	return list[len(list)-1]
}
