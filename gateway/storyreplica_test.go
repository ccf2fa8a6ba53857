package gateway_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
)

// takes is what a model takes for an input: some so long that questions are on their way when
// a version becomes another.
func takes(x float64) time.Duration {
	if x == slow {
		return 15 * time.Millisecond
	}
	return time.Millisecond
}

// listed says whether a replica has told the gateway that it runs a definition.
func (s *story) listed(d serving.Definition) bool {
	return slices.ContainsFunc(s.gateway.Replicas(), func(r route.Status) bool { return slices.Contains(r.Models, d) })
}

// start runs a replica of what its version is now, for as long as it runs.
func (s *story) start(v *serving.Version) (stop func()) {
	s.started++
	name := fmt.Sprintf("%v/%d", v.ModelID, s.started)
	ctx, cancel := context.WithCancel(s.ctx)
	gateways := s.on.listen()
	if v.Host != nil {
		h := &housing{s: s, host: v.Definition()}
		s.all.Go(func() { h.run(ctx, gateways) })
	} else {
		s.run(ctx, name, v, gateways)
	}
	s.replicas.Put(serving.Endpoint{Replica: name, Addr: gateways.Addr().String()})
	return func() { cancel(); s.replicas.Remove(name) }
}

// run runs a sidecar with its container.
func (s *story) run(ctx context.Context, name string, v *serving.Version, gateways net.Listener) {
	containers, d := s.on.listen(), v.Definition()
	side := sidecar.New(sidecar.Config{Replica: name, Models: []*serving.Version{v}}, s.metrics, slog.New(slog.DiscardHandler))
	s.all.Go(func() { _ = side.Run(ctx, gateways, containers) })
	s.all.Go(func() {
		_ = gocontainer.Serve(ctx, gocontainer.Config{Sidecar: containers.Addr().String(), Model: v.ModelID, Replica: name, Dial: s.on.dial}, func(inputs []serving.Value) []gocontainer.Result {
			results := make([]gocontainer.Result, len(inputs))
			var longest time.Duration
			for i := range results {
				x := float(inputs[i])
				results[i].Output, longest = serving.Number(s.says(d, x)), max(longest, takes(x))
			}
			time.Sleep(longest)
			return results
		})
	})
}

func float(v serving.Value) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(v.Data)) }

// housing is a replica of a host, as far as a gateway sees of it: it holds at once whatever
// it is asked to, and says what each is.
type housing struct {
	s    *story
	host serving.Definition
}

func (h *housing) run(ctx context.Context, ln net.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { <-ctx.Done(); ln.Close() })
	for {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		all.Go(func() { h.serve(ctx, nc) })
	}
}

func (h *housing) serve(ctx context.Context, nc net.Conn) {
	conn, err := rpc.Accept(ctx, nc, rpc.Hello{Role: rpc.RoleSidecar, Features: rpc.FeatureHost, MaxFrame: rpc.MaxFrame}, nil)
	if err != nil {
		return
	}
	var held []serving.Definition
	hold := func(d serving.Definition) error {
		if !slices.Contains(held, d) {
			held = append(held, d)
		}
		return conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, rpc.Announcement{
			ID: uint32(slices.Index(held, d)), State: rpc.StateReady, Model: d.ModelID, Generation: d.Generation,
		}))
	}
	if hold(h.host) != nil {
		return
	}
	_ = conn.Run(ctx, func(f rpc.Frame) error {
		switch f.Kind {
		case rpc.KindLoad:
			list, err := rpc.ParseLoad(f.Body)
			for _, v := range list {
				err = hold(v.Definition())
			}
			return err
		case rpc.KindPredict:
			p, err := rpc.ParsePredict(f)
			if err != nil {
				return err
			}
			var ask rpc.Ask
			p.Next(&ask)
			values, err := rpc.ParsePayload(ask.Payload)
			if err == nil {
				h.answer(conn, p.Batch, held[p.Model], float(values[0]))
			}
			return err
		}
		return nil
	})
}

// answer answers what a gateway asks of a version.
func (h *housing) answer(conn *rpc.Conn, question uint64, d serving.Definition, x float64) {
	a := rpc.Answer{Payload: rpc.AppendPayload(nil, serving.Number(h.s.says(d, x)))}
	time.AfterFunc(takes(x), func() {
		b := rpc.AppendReplyHead(conn.Begin(rpc.KindReply), rpc.ReplyHead{Batch: question, Count: 1})
		_ = conn.End(rpc.AppendAnswer(b, &a), 0)
	})
}
