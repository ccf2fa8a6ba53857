//go:build linux

package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// sharing is a sidecar's connection, and what a container gets over it, which opens the memory and frees slots when the test
// says so.
type sharing struct {
	*testing.T
	sidecar, container *Conn
	end                context.CancelFunc
	ended              error // of the sidecar's Run, when done is
	done               sync.WaitGroup
	opened             chan string // where the memory is
	got                chan arrival
	heard              chan struct{} // the sidecar has handled what came
}

// arrival is a payload, and the slot that it came in; -1: through the socket.
type arrival struct {
	payload []byte
	slot    int
}

func share(t *testing.T, container Features) *sharing {
	s := &sharing{T: t, opened: make(chan string, 1), got: make(chan arrival, 100), heard: make(chan struct{}, 100)}
	s.sidecar, s.container = loopback(t,
		Hello{Role: RoleSidecar, MaxFrame: MaxFrame, Features: FeatureMemory}, Hello{Role: RoleContainer, MaxFrame: MaxFrame, Features: container}, plain)
	s.sidecar.OnPause(func() { s.heard <- struct{}{} })
	ctx, end := context.WithCancel(t.Context())
	s.end = end
	s.done.Go(func() { s.ended = s.sidecar.Run(ctx, Unexpected) })
	s.done.Go(func() { _ = s.container.Run(ctx, s.handle) })
	t.Cleanup(func() { end(); s.done.Wait() })
	return s
}

func (s *sharing) handle(f Frame) error {
	switch v, err := decode(f); v := v.(type) {
	case offered:
		if link, err := os.Readlink(v.path); err != nil || link != v.link {
			s.Errorf("%s is a link to %s, not %s: %v", v.path, link, v.link, err)
		}
		s.opened <- v.path
		return err
	case shared:
		file, err := os.Open(<-s.opened)
		if err != nil {
			return err
		}
		defer file.Close()
		s.opened <- file.Name()
		body := make([]byte, v.size)
		if _, err := file.ReadAt(body, int64(v.slot)*slotSize); err != nil {
			return err
		}
		return s.predict(Frame{Kind: v.kind, Flags: v.flags, Body: body}, v.slot)
	case predict:
		return s.predict(f, -1)
	default:
		return errors.Join(err, fmt.Errorf("%+v is not expected", v))
	}
}

func (s *sharing) predict(f Frame, slot int) error {
	p, err := ParsePredict(f)
	for ask := new(Ask); err == nil && p.Next(ask); {
		s.got <- arrival{bytes.Clone(ask.Payload), slot}
	}
	return errors.Join(err, p.Err())
}

// send sends a batch of payloads of some bytes, and says which slot it came in.
func (s *sharing) send(sizes ...int) (slot int) {
	s.Helper()
	b := AppendPredictHead(s.sidecar.Begin(KindPredict), PredictHead{Batch: 1, Count: len(sizes)})
	payloads := make([][]byte, len(sizes))
	for i, size := range sizes {
		payloads[i] = AppendInput(nil, serving.Input{Type: serving.Bytes, Data: bytes.Repeat([]byte{byte(size), byte(i)}, size/2)})
		b = s.sidecar.AppendAsk(b, &Ask{User: []byte("me"), Payload: payloads[i]})
	}
	require.NoError(s, s.sidecar.End(b, 0))
	for i := range sizes {
		got := <-s.got
		if slot = got.slot; !bytes.Equal(got.payload, payloads[i]) {
			s.Errorf("payload %d of %v came as %d others", i, sizes, len(got.payload))
		}
	}
	return slot
}

// free has the container free slots, and waits until the sidecar knows.
func (s *sharing) free(list ...int) {
	var body []byte
	for _, slot := range list {
		body = appendU32(body, uint32(slot))
	}
	require.NoError(s, s.container.Send(KindFree, 0, body))
	for known := false; !known; {
		select {
		case <-s.heard:
		case <-s.Context().Done():
			s.Fatal("the sidecar does not hear which slots are free")
		}
		s.sidecar.mu.Lock()
		known = s.sidecar.memory.free[list[len(list)-1]]
		s.sidecar.mu.Unlock()
	}
}

// Large frames are in memory once the container has opened it, in the lowest slot that is free; what does not fit comes through
// the socket, and what is small does not bother.
func TestLargeFramesAreInMemoryThatIsShared(t *testing.T) {
	s := share(t, FeatureMemory)
	if slot := s.send(600_000); slot != -1 {
		t.Errorf("the first frame came in slot %d, before the memory was open", slot)
	}
	path := <-s.opened
	s.opened <- path
	if slot := s.send(600_000); slot != -1 {
		t.Errorf("it came in slot %d, which the container has not freed", slot)
	}
	s.free(0, 1, 2, 3)
	for i, sizes := range [][]int{{600_000}, {100, 600_000, 7, 3 << 20, leaveApart}, {leaveApart + 2}} {
		if slot := s.send(sizes...); slot != i {
			t.Errorf("payloads of %v came in slot %d, not %d", sizes, slot, i)
		}
	}
	for _, sizes := range [][]int{{100}, {slotSize}, {9 << 20, 8 << 20}} {
		if slot := s.send(sizes...); slot != -1 {
			t.Errorf("payloads of %v came in slot %d", sizes, slot)
		}
	}
	s.free(1)
	for _, want := range []int{1, 3, -1} {
		if slot := s.send(600_000); slot != want {
			t.Errorf("it came in slot %d, not in %d", slot, want)
		}
	}
	s.free(0, 1, 2, 3)
	pages := func() int64 {
		file, err := os.Stat(path)
		require.NoError(t, err)
		return file.Sys().(*syscall.Stat_t).Blocks
	}
	if pages() == 0 {
		t.Error("the memory takes none")
	}
	s.sidecar.forget()
	if pages() == 0 {
		t.Error("the memory is given back while it is used")
	}
	s.sidecar.forget() // a second later
	if n := pages(); n != 0 {
		t.Errorf("the memory takes %d blocks that nothing uses", n)
	}
	if slot := s.send(600_000); slot != 0 {
		t.Errorf("it came in slot %d", slot)
	}
	s.end()
	s.done.Wait()
	if _, err := os.Readlink(path); err == nil {
		t.Error("the memory is left when the connection has ended")
	}
}

func TestMemoryIsForPeersThatShareIt(t *testing.T) {
	for _, features := range []Features{0, FeatureTensors} {
		s := share(t, features)
		for range 3 {
			if slot := s.send(600_000); slot != -1 || len(s.opened) > 0 {
				t.Errorf("slot %d", slot)
			}
		}
	}
}

func TestSlotsThatAreNotInUseCannotBeFreed(t *testing.T) {
	for name, body := range map[string][]byte{"twice": {0, 0, 0, 0, 0, 0, 0, 0}, "one that is not there": {4, 0, 0, 0}, "half": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			s := share(t, FeatureMemory)
			s.send(600_000)
			<-s.opened
			s.container.Send(KindFree, 0, body)
			s.done.Wait()
			if _, ok := errors.AsType[*ProtocolError](s.ended); !ok {
				t.Errorf("%v", s.ended)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		s := share(t, FeatureMemory)
		s.container.Send(KindFree, 0, []byte{0, 0, 0, 0})
		s.done.Wait()
		if _, ok := errors.AsType[*ProtocolError](s.ended); !ok {
			t.Errorf("%v", s.ended)
		}
	})
}

func FuzzFree(f *testing.F) {
	addBodies(f, KindFree)
	f.Fuzz(func(t *testing.T, body []byte) {
		c := &Conn{memory: new(memory)}
		if err := c.freed(body); err != nil {
			checkRefusal(t, Frame{Kind: KindFree, Body: body}, err)
		} else if len(body) > 4*slots {
			t.Error("more slots are free than there are")
		}
	})
}
