package container

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
	"github.com/topsail-serving/topsail/test/require"
)

// begin runs one batch as a batcher does: what is left unanswered fails with it. It is given up after a while.
func (r *rig) begin(runner *Runner, items []*queue.Item, within time.Duration) <-chan error {
	done := make(chan error, 1)
	giveUp := runner.Begin(items, func(err error) {
		if err != nil {
			for _, it := range items {
				it.Refuse(rpc.StatusContainer, err.Error())
			}
		}
		done <- err
	})
	time.AfterFunc(within, giveUp)
	return done
}

func (r *rig) run(items []*queue.Item, within time.Duration) error {
	return <-r.begin(r.session.Runner(1), items, within)
}

// dead says whether the session has ended.
func (r *rig) dead() bool {
	synctest.Wait()
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

func ok(index uint32, in predict) rpc.Answer {
	return rpc.Answer{Index: index, Payload: in.asks[min(int(index), len(in.asks)-1)].Payload}
}

// A lie is what a container does with a batch of 3.
type lie struct {
	name  string
	tell  func(p *peer, in predict)
	ok    []int // the items that are answered all the same
	says  string
	lives bool
}

var lies = []lie{
	{"an input is left out", func(p *peer, in predict) { p.reply(in.Batch, true, ok(2, in), ok(0, in)) }, []int{0, 2}, "answered 2 of the 3 inputs", true},
	{"nothing but END", func(p *peer, in predict) { p.reply(in.Batch, true) }, nil, "answered 0 of the 3 inputs", true},
	{"a stream without its last part", func(p *peer, in predict) {
		part := ok(1, in)
		part.More = true
		p.reply(in.Batch, true, ok(0, in), part, ok(2, in))
	}, []int{0, 2}, "answered 2 of the 3 inputs", true},
	{"a count above the entries", func(p *peer, in predict) { p.send(in.Batch, 4, rpc.FlagEnd, echoes(in)) }, []int{0, 1, 2}, "", false},
	{"a count below the entries", func(p *peer, in predict) { p.send(in.Batch, 2, rpc.FlagEnd, echoes(in)) }, []int{0, 1}, "more bytes", false},
	{"an index beyond the batch", func(p *peer, in predict) { p.reply(in.Batch, true, ok(0, in), ok(3, in)) }, []int{0}, "3 is beyond a batch of 3", false},
	{"the largest index", func(p *peer, in predict) {
		p.reply(in.Batch, true, rpc.Answer{Index: 1<<32 - 1, Status: rpc.StatusModelError})
	}, nil, "beyond a batch of 3", false},
	{"an input answered twice", func(p *peer, in predict) { p.reply(in.Batch, true, ok(0, in), ok(0, in), ok(1, in)) }, []int{0}, "input 0 was answered before", false},
	{"and in two frames", func(p *peer, in predict) { p.reply(in.Batch, false, ok(0, in)); p.reply(in.Batch, true, ok(0, in)) }, []int{0}, "input 0 was answered before", false},
	{"a batch that was never sent", func(p *peer, in predict) { p.reply(in.Batch+1, true, ok(0, in)) }, nil, "was not requested", false},
	{"batch 0", func(p *peer, in predict) { p.reply(0, true, ok(0, in)) }, nil, "was not requested", false},
	{"an unknown status", func(p *peer, in predict) { p.reply(in.Batch, true, rpc.Answer{Status: 77}) }, nil, "status", false},
	{"an unknown frame", func(p *peer, in predict) { p.conn.Send(77, 0, nil) }, nil, "kind 77", false},
	{"a frame of the other direction", func(p *peer, in predict) { p.conn.Send(rpc.KindPredict, 0, nil) }, nil, "is not expected here", false},
	{"garbage", func(p *peer, in predict) { p.nc.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, nil, "rpc: bad", false},
	{"half a frame", func(p *peer, in predict) {
		p.nc.Write(rpc.AppendFrame(nil, rpc.KindReply, rpc.FlagEnd, make([]byte, 100))[:50])
		p.nc.Close()
	}, nil, "unexpected EOF", false},
	{"it closes", func(p *peer, in predict) { p.nc.Close() }, nil, "EOF", false},
	{"it says BYE", func(p *peer, in predict) { p.conn.Send(rpc.KindBye, 0, rpc.AppendBye(nil, "out of memory")) }, nil, "out of memory", false},
	{"it announces what it must not", func(p *peer, in predict) { p.conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil)) }, nil, "not yours", false},
	{"metrics that are none", func(p *peer, in predict) { p.conn.Send(rpc.KindMetrics, 0, []byte{1, 0, 0, 0}) }, nil, "METRICS", false},
}

func TestALyingContainer(t *testing.T) {
	for _, l := range lies {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, c := newRig(t, rpc.MaxFrame), newClient(t)
				r.refuse = errors.New("not yours")
				items := c.items(3, 0)
				go func() { l.tell(r.peer, <-r.peer.asked) }()
				if err := r.run(items, time.Hour); (err == nil) != l.lives {
					t.Errorf("the batch ended with %v", err)
				}
				if r.dead() == l.lives {
					t.Errorf("the session lives: %v, want %v", !r.dead(), l.lives)
				}
				for i, it := range items {
					a := c.last(it)
					if slices.Contains(l.ok, i) {
						if a.Status != rpc.StatusOK {
							t.Errorf("item %d: %v %q, it was answered", i, a.Status, a.Message)
						}
					} else if a.Status != rpc.StatusContainer || !strings.Contains(string(a.Message), l.says) {
						t.Errorf("item %d: %v %q, want a container error that says %q", i, a.Status, a.Message, l.says)
					}
				}
				r.serves(c, l.lives)
			})
		})
	}
}

// serves checks whether the session serves on.
func (r *rig) serves(c *client, lives bool) {
	r.t.Helper()
	if lives {
		go func() { r.peer.echo(<-r.peer.asked) }()
	}
	items := c.items(2, 0)
	if err := r.run(items, time.Minute); (err == nil) != lives {
		r.t.Errorf("the next batch: %v", err)
	}
	for _, it := range items {
		if a := c.last(it); (a.Status == rpc.StatusOK) != lives {
			r.t.Errorf("the next batch got %v %q", a.Status, a.Message)
		}
	}
}

func TestAHonestContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newRig(t, rpc.MaxFrame), newClient(t)
		go func() {
			in := <-r.peer.asked
			if in.Model != 1 || in.Count != 4 || in.asks[0].Budget != 10*time.Second || in.asks[3].Budget >= 0 {
				t.Errorf("it was asked for %+v", in)
			}
			r.peer.reply(in.Batch, false, ok(2, in)) // any order, several frames
			r.peer.conn.Send(200, 0, []byte("of a later version"))
			part := ok(0, in)
			part.More = true
			r.peer.reply(in.Batch, false, part, part)
			r.peer.reply(in.Batch, true, ok(0, in), rpc.Answer{Index: 3, Status: rpc.StatusModelError, Message: []byte("ValueError: no")}, ok(1, in))
			r.peer.reply(in.Batch, true) // once too often, and late
		}()
		items := c.items(4, 0)
		items[3].Deadline = time.Time{}
		items[0].Ask.Bits = rpc.AskParts
		require.NoError(t, r.run(items, time.Minute))
		if got := c.answers[items[0]]; len(got) != 3 || !got[0].More || !got[1].More {
			t.Errorf("a stream of 3 came as %+v", got)
		}
		for i, it := range items {
			a := c.last(it)
			if want := rpc.Status(i / 3); a.Status != want || a.Index != it.Index {
				t.Errorf("item %d: %v %q, want %v", i, a.Status, a.Message, want)
			}
		}
		r.serves(c, true)
	})
}

func TestAContainerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newRig(t, rpc.MaxFrame), newClient(t)
		items, start := c.items(3, 0), time.Now()
		if err := r.run(items, 7*time.Second); !errors.Is(err, ErrStalled) || time.Since(start) != 7*time.Second {
			t.Errorf("the batch ended with %v after %v", err, time.Since(start))
		}
		in := <-r.peer.asked
		r.peer.echo(in) // too late, and for nobody
		synctest.Wait()
		for _, it := range items {
			if a := c.last(it); a.Status != rpc.StatusContainer || !strings.Contains(string(a.Message), "stalled") {
				t.Errorf("%v %q", a.Status, a.Message)
			}
		}
		r.serves(c, true) // whoever runs the session ends it
	})
}

// Its model holds the lock of the interpreter: it says nothing, not even PONG, until it answers.
func TestAContainerThatIsSilentWhileItComputes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newMuteRig(t, 2*maxSilence), newClient(t)
		items := c.items(1, 0)
		r.peer.reply(1, true, rpc.Answer{Payload: items[0].Ask.Payload}) // once it speaks
		require.NoError(t, r.run(items, time.Hour))
		if a := c.last(items[0]); a.Status != rpc.StatusOK {
			t.Errorf("%v %q", a.Status, a.Message)
		}
	})
}

// Without a batch there is no reason to be silent for so long.
func TestAContainerThatIsSilentForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, start := newMuteRig(t, time.Hour), time.Now()
		<-r.ended
		if took := time.Since(start); !errors.Is(r.why, ErrStalled) || took < maxSilence || took > maxSilence+2*time.Second {
			t.Errorf("the session ended after %v: %v", took, r.why)
		}
	})
}

// One that does not read cannot be asked anything.
func TestAContainerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newRig(t, rpc.MaxFrame), newClient(t)
		r.peer.stuck = make(chan struct{})
		items, start := c.items(3, 0), time.Now()
		err := r.run(items, time.Hour)
		if took := time.Since(start); !errors.Is(err, ErrStalled) || took < 4*time.Second || took > 11*time.Second {
			t.Errorf("the batch ended with %v after %v", err, took)
		}
		for _, it := range items {
			if a := c.last(it); a.Status != rpc.StatusContainer || !strings.Contains(string(a.Message), "the container disconnected") {
				t.Errorf("%v %q", a.Status, a.Message)
			}
		}
		close(r.peer.stuck)
	})
}

func TestALargeBatchGoesOutInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newRig(t, rpc.MinMaxFrame), newClient(t)
		items := c.items(21, 10_000)
		huge := c.items(22, rpc.MinMaxFrame)[21]
		items = slices.Insert(items, 7, huge)
		var sizes []int
		go func() {
			for in := range r.peer.asked {
				sizes = append(sizes, len(in.asks))
				r.peer.echo(in)
			}
		}()
		require.NoError(t, r.run(items, time.Minute))
		for _, it := range items {
			a := c.last(it)
			switch {
			case it == huge && (a.Status != rpc.StatusBadInput || !strings.Contains(string(a.Message), "larger than the container accepts")):
				t.Errorf("the huge input got %v %q", a.Status, a.Message)
			case it != huge && a.Status != rpc.StatusOK:
				t.Errorf("an input beside it got %v %q", a.Status, a.Message)
			}
		}
		if len(sizes) < 4 || len(sizes) > 8 {
			t.Errorf("it went out in parts of %v", sizes)
		}
		close(r.peer.asked)
	})
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newRig(t, rpc.MaxFrame), newClient(t)
		p := r.peer.conn
		p.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, rpc.Announcement{ID: 1, State: rpc.StateReady, Model: serving.ModelID{Model: "m", Version: "1"}}))
		p.Send(rpc.KindMetrics, 0, rpc.AppendMetrics(nil, rpc.Metric{Kind: rpc.MetricGauge, Name: "depth", Value: 3}))
		p.Send(rpc.KindDrain, 0, nil)
		if r.dead() || !slices.Equal(r.events, []string{"announced", "draining"}) || len(r.metrics) != 1 || r.metrics[0].Value != 3 {
			t.Errorf("events %v, metrics %v", r.events, r.metrics)
		}
		r.serves(c, true) // the batch in hand of one that drains
	})
}
