package sidecar

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// model is the container's side of a session: it announces what it serves and
// treats batches as the test says.
type model struct {
	t    *testing.T
	nc   net.Conn
	conn *rpc.Conn
	gone chan struct{} // closed when the connection has ended
	why  error

	mu        sync.Mutex
	treat     func(m *model, batch uint64, in [][]byte)
	batches   int
	inputs    int
	taught    []lesson
	hosting   func(rpc.Frame) error // of a host: takes LOAD and UNLOAD
	cancelled func(rpc.Cancel)      // nil, or called for each CANCEL, on a goroutine of its own
	stuck     chan struct{}         // when set, it reads no further until this is closed
}

// lesson is feedback that came for the model of an id.
type lesson struct {
	id uint32
	rpc.Feedback
	batches int // that had come before it
}

// connect opens a session in the role and with the token that hello says.
func connect(t *testing.T, nc net.Conn, hello rpc.Hello) (*model, error) {
	conn, err := rpc.Connect(t.Context(), nc, hello)
	if err != nil {
		return nil, err
	}
	m := &model{t: t, nc: nc, conn: conn, gone: make(chan struct{}), treat: echo}
	go func() {
		defer close(m.gone)
		m.why = conn.Run(t.Context(), m.handle)
	}()
	t.Cleanup(func() { <-m.gone })
	return m, nil
}

// model starts a container that is ready with model m and echoes, or does as
// treat says.
func (r *rig) model(treat func(*model, uint64, [][]byte)) *model {
	r.t.Helper()
	m, err := connect(r.t, r.dial.container(), hello(rpc.RoleContainer, ""))
	require.NoError(r.t, err)
	if treat != nil {
		m.treat = treat
	}
	m.announce(1, "m", rpc.StateReady)
	pass(0)
	return m
}

func (m *model) announce(id uint32, name string, state rpc.State) {
	a := rpc.Announcement{ID: id, State: state, Model: serving.ModelID{Model: name, Version: "1"}}
	m.conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, a))
}

func (m *model) handle(f rpc.Frame) error {
	m.mu.Lock()
	stuck := m.stuck
	m.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	if f.Kind == rpc.KindLoad || f.Kind == rpc.KindUnload {
		return m.hosting(f)
	}
	if f.Kind == rpc.KindFeedback {
		return m.learn(f)
	}
	if f.Kind == rpc.KindCancel && m.cancelled != nil {
		c, err := rpc.ParseCancel(f.Body)
		go m.cancelled(c)
		return err
	}
	if f.Kind != rpc.KindPredict {
		return nil
	}
	in, err := rpc.ParsePredict(f)
	if err != nil {
		return err
	}
	var inputs [][]byte
	var ask rpc.Ask
	for in.Next(&ask) {
		if len(ask.App) > 0 {
			m.t.Error("a container is told which app asks")
		}
		inputs = append(inputs, bytes.Clone(ask.Payload))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches++
	m.inputs += len(inputs)
	treat := m.treat
	go treat(m, in.Batch, inputs) // on a goroutine of its own, as PING must be answered
	return in.Err()
}

func (m *model) learn(f rpc.Frame) error {
	id, list, err := rpc.ParseFeedback(bytes.Clone(f.Body))
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range list {
		m.taught = append(m.taught, lesson{id, v, m.batches})
	}
	return err
}

// lessons is the feedback that came so far.
func (m *model) lessons() []lesson {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.taught)
}

func (m *model) stick(until chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stuck = until
}

func (m *model) seen() (batches, inputs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.batches, m.inputs
}

func (m *model) do(treat func(*model, uint64, [][]byte)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.treat = treat
}

func (m *model) reply(batch uint64, flags rpc.Flags, answers ...rpc.Answer) {
	b := rpc.AppendReplyHead(nil, rpc.ReplyHead{Batch: batch, Count: len(answers)})
	for i := range answers {
		b = rpc.AppendAnswer(b, &answers[i])
	}
	m.conn.Send(rpc.KindReply, flags, b)
}

func (m *model) dead() bool {
	pass(0)
	select {
	case <-m.gone:
		return true
	default:
		return false
	}
}

// echo answers each input with itself.
func echo(m *model, batch uint64, in [][]byte) {
	answers := make([]rpc.Answer, len(in))
	for i := range in {
		answers[i] = rpc.Answer{Index: uint32(i), Payload: in[i]}
	}
	m.reply(batch, rpc.FlagEnd, answers...)
}

// slow echoes after a while.
func slow(d time.Duration) func(*model, uint64, [][]byte) {
	return func(m *model, batch uint64, in [][]byte) {
		time.Sleep(d)
		echo(m, batch, in)
	}
}

func hang(*model, uint64, [][]byte) {}
