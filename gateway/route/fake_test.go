package route

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

var errGone = errors.New("the resolver is gone")

var v1 = serving.ModelID{Model: "m", Version: "1"}

// rig is a table in a bubble, with a network of pipes. It ends with the test.
type rig struct {
	*testing.T
	table *Table
	lists chan []serving.Endpoint
	gone  chan error // what the resolver ends with, if it does
	ended chan error

	mu    sync.Mutex // guards the following
	hosts map[string]chan net.Conn
	dials []time.Time
	open  atomic.Int64 // the table's ends of connections

	offers rpc.Features // of sidecars that are accepted, beside those of all
}

// bubble runs a test with a rig. Goroutines that the table leaves behind fail it.
func bubble(t *testing.T, run func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &rig{T: t, lists: make(chan []serving.Endpoint), gone: make(chan error), ended: make(chan error, 1), hosts: map[string]chan net.Conn{}}
		r.table = NewTable("gateway-1", r, slog.New(slog.DiscardHandler))
		r.table.Dial = r.dial
		go func() { r.ended <- r.table.Run(ctx) }()
		run(r)
		cancel()
		if err := <-r.ended; !errors.Is(err, context.Canceled) && !errors.Is(err, errGone) {
			t.Errorf("Run: %v", err)
		}
		if n := r.open.Load(); n != 0 {
			t.Errorf("%d connections are open after Run", n)
		}
		if r.table.Group(serving.Definition{ModelID: v1}).Len() != 0 || len(r.table.Replicas()) != 0 {
			t.Error("the table lists replicas after Run")
		}
	})
}

// Watch implements Resolver.
func (r *rig) Watch(ctx context.Context, update func([]serving.Endpoint)) error {
	for {
		select {
		case list := <-r.lists:
			update(list)
		case err := <-r.gone:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// resolve makes the table know these replicas; each listens at its own name.
func (r *rig) resolve(names ...string) {
	list := []serving.Endpoint{}
	for _, name := range names {
		list = append(list, serving.Endpoint{Replica: name, Addr: name})
	}
	r.lists <- list
	synctest.Wait()
}

func (r *rig) dial(ctx context.Context, addr string) (net.Conn, error) {
	r.mu.Lock()
	r.dials = append(r.dials, time.Now())
	host := r.hosts[addr]
	r.mu.Unlock()
	if host == nil {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	select {
	case host <- far:
		r.open.Add(1)
		return &counted{Conn: near, open: &r.open}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// counted is a connection that says when it is closed.
type counted struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// listen makes the host reachable.
func (r *rig) listen(host string) <-chan net.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch := make(chan net.Conn)
	r.hosts[host] = ch
	return ch
}

// sidecar is the far end of a connection, played by the test.
type sidecar struct {
	*rig
	nc      net.Conn
	conn    *rpc.Conn
	asked   chan rpc.PredictHead
	budgets chan time.Duration
	apps    chan string // and their classes
	cancels chan rpc.Cancel
	taught  chan []byte   // bodies of FEEDBACK
	stuck   chan struct{} // when set, it reads no further until this is closed
	kill    context.CancelFunc
	why     error // set when done is closed
	done    chan struct{}
}

var sidecarHello = rpc.Hello{Role: rpc.RoleSidecar, Features: rpc.FeatureLZ4, MaxFrame: rpc.MaxFrame, Name: "fake"}

// accept takes the next connection to a host.
func (r *rig) accept(host <-chan net.Conn) *sidecar {
	r.Helper()
	nc := <-host
	hello := sidecarHello
	hello.Features |= r.offers
	conn, err := rpc.Accept(r.Context(), nc, hello, func(h rpc.Hello) error {
		if h.Role != rpc.RoleGateway || h.Name != "gateway-1" {
			return errors.New("not the gateway")
		}
		return nil
	})
	if err != nil {
		r.Fatalf("accept: %v", err)
	}
	ctx, kill := context.WithCancel(r.Context())
	s := &sidecar{
		rig: r, nc: nc, conn: conn, kill: kill, done: make(chan struct{}),
		asked: make(chan rpc.PredictHead, 10000), budgets: make(chan time.Duration, 10000), apps: make(chan string, 10000), cancels: make(chan rpc.Cancel, 100),
		taught: make(chan []byte, 100),
	}
	go func() {
		defer close(s.done)
		s.why = conn.Run(ctx, s.handle)
	}()
	return s
}

func (s *sidecar) handle(f rpc.Frame) error {
	if s.stuck != nil {
		<-s.stuck
	}
	switch f.Kind {
	case rpc.KindPredict:
		p, err := rpc.ParsePredict(f)
		if err != nil {
			return err
		}
		var ask rpc.Ask
		for p.Next(&ask) {
			s.budgets <- ask.Budget
			if len(ask.App) > 0 {
				s.apps <- fmt.Sprintf("%s %v %v %v", ask.App, ask.Weight, ask.MinShare, ask.Priority)
			} else {
				s.apps <- ""
			}
		}
		s.asked <- p.PredictHead
		return p.Err()
	case rpc.KindCancel:
		c, err := rpc.ParseCancel(f.Body)
		s.cancels <- c
		return err
	}
	if f.Kind == rpc.KindFeedback {
		s.taught <- bytes.Clone(f.Body)
		return nil
	}
	return rpc.Unexpected(f)
}

// announce says how versions are doing.
func (s *sidecar) announce(list ...rpc.Announcement) {
	s.send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, list...))
}

func ready(id uint32, model serving.ModelID) rpc.Announcement {
	return rpc.Announcement{ID: id, State: rpc.StateReady, InputType: serving.Doubles, Model: model}
}

// reply answers a batch.
func (s *sidecar) reply(head rpc.ReplyHead, flags rpc.Flags, answers ...rpc.Answer) {
	head.Count = len(answers)
	b := rpc.AppendReplyHead(nil, head)
	for i := range answers {
		b = rpc.AppendAnswer(b, &answers[i])
	}
	s.send(rpc.KindReply, flags, b)
}

func (s *sidecar) send(kind rpc.Kind, flags rpc.Flags, body []byte) {
	s.Helper()
	if err := s.conn.Send(kind, flags, body); err != nil {
		s.Errorf("send: %v", err)
	}
	synctest.Wait()
}

// output is an answer with one number.
func output(x float64) rpc.Answer {
	return rpc.Answer{Payload: rpc.AppendPayload(nil, serving.Number(x))}
}

// inbox receives the answers to one question.
type inbox struct {
	*testing.T
	from    *Target
	mu      sync.Mutex
	answers []rpc.Answer // guarded by mu, as is the next; Message and Payload copied
	service time.Duration
}

func (in *inbox) Part(*Target, *rpc.Answer) {}

func (in *inbox) Answered(from *Target, a *rpc.Answer, service time.Duration, _ time.Time) {
	if from != in.from {
		in.Errorf("the answer is from %s, not %s", from.Replica(), in.from.Replica())
	}
	kept := *a
	kept.Message, kept.Payload = append([]byte(nil), a.Message...), append([]byte(nil), a.Payload...)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.answers, in.service = append(in.answers, kept), service
}

func (in *inbox) len() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.answers)
}

// ask asks a target and returns where the answer comes, and the question's number.
func (r *rig) ask(target *Target, budget time.Duration) (*inbox, uint64) {
	r.Helper()
	in := &inbox{T: r.T, from: target}
	number, failure := target.Ask(in, &rpc.Ask{Budget: budget}, serving.Input{Type: serving.Doubles, Data: make([]byte, 8)}, time.Now())
	if failure != nil {
		r.Fatalf("ask: %v", failure)
	}
	synctest.Wait()
	return in, number
}

// one is the only answer that came.
func (in *inbox) one() rpc.Answer {
	in.Helper()
	synctest.Wait()
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.answers) != 1 {
		in.Fatalf("%d answers: %v", len(in.answers), in.answers)
	}
	return in.answers[0]
}

// target is the only ready replica of a version.
func (r *rig) target(id serving.ModelID) *Target {
	r.Helper()
	g := r.table.Group(serving.Definition{ModelID: id})
	if g.Len() != 1 {
		r.Fatalf("%d replicas of %v are ready, want 1", g.Len(), id)
	}
	return g.Pick(0, nil, time.Now())
}

// connected is a rig with one replica that is connected and ready.
func (r *rig) connected() (*sidecar, *Target) {
	r.Helper()
	host := r.listen("a")
	r.resolve("a")
	s := r.accept(host)
	s.announce(ready(7, v1))
	return s, r.target(v1)
}
