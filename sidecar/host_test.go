package sidecar

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

const (
	mib      = 1 << 20
	aProcess = 30 * mib // what the fake container takes when it holds nothing
	aModel   = 10 * mib // what it takes for each version
)

// fakeHost is a container that holds what it is asked to, and echoes.
type fakeHost struct {
	*model
	mu     sync.Mutex
	ids    map[uint32]serving.ModelID
	last   uint32
	wrong  map[string]string        // by model: why it cannot be loaded
	slow   map[string]time.Duration // by model: what loading takes
	size   map[string]uint64        // by model: instead of aModel
	seen   []string                 // "+model" and "-model", as it was asked
	beside uint32                   // how many queries each version runs side by side; 0: it takes batches
	keeps  bool                     // it does not give back what it frees
	most   int                      // it held at a time
	mute   bool                     // it does not answer LOAD
}

func (r *rig) fakeHost() *fakeHost {
	r.t.Helper()
	f := &fakeHost{ids: map[uint32]serving.ModelID{}, last: 10, wrong: map[string]string{}, slow: map[string]time.Duration{}, size: map[string]uint64{}}
	mine := hello(rpc.RoleContainer, "")
	mine.Features |= rpc.FeatureHost | rpc.FeatureParts
	m, err := connect(r.t, r.dial.container(), mine)
	require.NoError(r.t, err)
	f.model = m
	m.hosting = f.handle
	m.conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, f.self()))
	pass(0)
	return f
}

// self announces the host itself. f.mu is held, or nobody else is there yet.
func (f *fakeHost) self() rpc.Announcement {
	total := uint64(aProcess)
	for _, id := range f.ids {
		total += f.sizeOf(id.Model)
	}
	if f.keeps {
		total = max(total, aProcess+uint64(f.most)*aModel)
	}
	return rpc.Announcement{ID: 0, State: rpc.StateReady, Model: serving.ModelID{Model: "small", Version: "1"}, Memory: total}
}

func (f *fakeHost) sizeOf(model string) uint64 {
	if size, ok := f.size[model]; ok {
		return size
	}
	return aModel
}

func (f *fakeHost) handle(frame rpc.Frame) error {
	if frame.Kind == rpc.KindUnload {
		id, err := rpc.ParseUnload(frame.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen = append(f.seen, "-"+f.ids[id].Model)
		delete(f.ids, id)
		f.announces(rpc.Announcement{ID: id, State: rpc.StateGone})
		return err
	}
	list, err := rpc.ParseLoad(frame.Body)
	if err != nil || f.mute {
		return err
	}
	for _, v := range list {
		go f.load(v)
	}
	return nil
}

func (f *fakeHost) load(v rpc.Load) {
	time.Sleep(f.slow[v.Model.Model])
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, "+"+v.Model.Model)
	f.last++
	if why := f.wrong[v.Model.Model]; why != "" {
		f.announces(rpc.Announcement{ID: f.last, State: rpc.StateGone, Model: v.Model, Reason: why})
		return
	}
	f.ids[f.last] = v.Model
	f.most = max(f.most, len(f.ids))
	f.announces(rpc.Announcement{ID: f.last, State: rpc.StateReady, InputType: v.InputType, Model: v.Model, Memory: f.sizeOf(v.Model.Model), Concurrency: f.beside})
}

// announces says something, and how the host is. f.mu is held.
func (f *fakeHost) announces(a rpc.Announcement) {
	f.conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, a, f.self()))
}

func (f *fakeHost) wantSeen(want string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := strings.Join(f.seen, " "); got != want {
		f.t.Errorf("the container was asked for %q, want %q", got, want)
	}
}

// hostRig is a sidecar of a host that may take so much memory.
func hostRig(t *testing.T, memoryMB int, change func(*Config)) *rig {
	cfg := Config{
		Models: []*serving.Version{{ModelID: serving.ModelID{Model: "small", Version: "1"}, Host: &serving.HostSpec{MemoryMB: memoryMB}}},
		Fetch: func(ctx context.Context, v rpc.Load) (string, int64, error) {
			if v.URL == "nowhere" {
				return "", 0, errors.New("nothing is there")
			}
			return v.Bundle[7:10], 1000, ctx.Err()
		},
	}
	if change != nil {
		change(&cfg)
	}
	return newRig(t, cfg)
}

func loadOf(model string) rpc.Load {
	return rpc.Load{InputType: serving.Doubles, Model: serving.ModelID{Model: model, Version: "1"}, Bundle: "sha256:" + strings.Repeat("ab", 32)}
}

// load asks for a version, and gives the time that loading takes.
func (g *gateway) load(v rpc.Load) {
	g.conn.Send(rpc.KindLoad, 0, rpc.AppendLoad(nil, v))
	pass(100 * ms)
}

// of is what the sidecar said last of a model.
func (g *gateway) of(model string) rpc.Announcement {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.latest[serving.ModelID{Model: model, Version: "1"}]
}

func (g *gateway) wantState(model string, want rpc.State) rpc.Announcement {
	g.t.Helper()
	a := g.of(model)
	if a.State != want {
		g.t.Errorf("%s is announced as %d (%s), want %d", model, a.State, a.Reason, want)
	}
	return a
}

func TestAHostLoadsWhatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		pass(0)
		g.wantState("small", rpc.StateReady)
		if g.of("ann").Model.Model != "" {
			t.Error("a version was announced that nobody asked for")
		}
		g.load(loadOf("ann"))
		a := g.wantState("ann", rpc.StateReady)
		if a.InputType != serving.Doubles {
			t.Errorf("it takes %v", a.InputType)
		}
		batch := g.ask(a.ID, time.Second, tagged(7))
		pass(0)
		if got := g.answer(batch); got.Status != rpc.StatusOK {
			t.Errorf("status %v: %s", got.Status, got.Message)
		}
		g.load(loadOf("ann")) // again: it is there
		f.wantSeen("+ann")
		late := r.gateway() // hears what is there
		pass(0)
		late.wantState("ann", rpc.StateReady)
	})
}

// A host may be an engine, whose versions run queries side by side, and answer in parts.
func TestVersionsOfAnEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		f.beside, f.treat = rpc.AnyConcurrency, parts(3, 100*ms)
		g.load(loadOf("ann"))
		a := g.wantState("ann", rpc.StateReady)
		start := time.Now()
		one, two := g.askParts(a.ID, time.Second, tagged(1)), g.askParts(a.ID, time.Second, tagged(2))
		pass(time.Second)
		for _, batch := range []uint64{one, two} {
			got := g.all(batch)
			if len(got) != 4 || got[3].Status != rpc.StatusOK || got[3].at.Sub(start) != 200*ms {
				t.Errorf("there was %+v", got)
			}
		}
	})
}

func TestAHostMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil) // the process and three versions
		f, g := r.fakeHost(), r.gateway()
		for _, name := range []string{"a", "b", "c"} {
			g.load(loadOf(name))
		}
		g.ask(g.of("a").ID, time.Second, tagged(1)) // so that b was asked longest ago
		pass(ms)
		g.load(loadOf("d"))
		f.wantSeen("+a +b +c -b +d")
		g.wantState("b", rpc.StateGone)
		for _, name := range []string{"a", "c", "d"} {
			g.wantState(name, rpc.StateReady)
		}
		batch := g.ask(g.of("b").ID, time.Second, tagged(2)) // a gateway that has not heard yet
		pass(0)
		if got := g.answer(batch); got.Status != rpc.StatusUnknownModel {
			t.Errorf("a version that was unloaded: status %v", got.Status)
		}
		if got := r.metric(`topsail_host_models{model="small",replica="m/0",version="1"}`); got != 3 {
			t.Errorf("%v versions are held", got)
		}
		if got := r.metric(`topsail_host_memory_bytes{model="small",of="used",replica="m/0",version="1"}`); got != aProcess+3*aModel {
			t.Errorf("%v bytes are used", got)
		}
	})
}

// A version that has queries is not unloaded: who wants room waits.
func TestABusyVersionStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 44, nil) // the process and one version
		f, g := r.fakeHost(), r.gateway()
		f.do(slow(time.Second))
		g.load(loadOf("a"))
		batch := g.ask(g.of("a").ID, 2*time.Second, tagged(1))
		pass(0)
		g.load(loadOf("b"))
		f.wantSeen("+a")
		pass(time.Second)
		f.wantSeen("+a -a +b")
		if got := g.answer(batch); got.Status != rpc.StatusOK {
			t.Errorf("status %v: %s", got.Status, got.Message)
		}
		g.wantState("b", rpc.StateReady)
	})
}

// What a process does not give back is not given away twice.
func TestAHostThatKeepsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		f.keeps = true
		f.size["big"] = 2 * aModel
		for _, name := range []string{"a", "b", "c", "big"} {
			g.load(loadOf(name))
		}
		if a := g.of("big"); a.State == rpc.StateReady || !strings.Contains(a.Reason, "too much memory") {
			t.Errorf("it was announced as %d, %q", a.State, a.Reason)
		}
		if got := r.metric(`topsail_host_memory_bytes{model="small",of="used",replica="m/0",version="1"}`); got > 66*mib {
			t.Errorf("%v bytes are used", got)
		}
	})
}

func TestWhatAHostCannotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		f.wrong["broken"] = "there is no model.pkl"
		f.size["huge"] = 60 * mib
		nowhere, bare, untyped := loadOf("nowhere"), loadOf("bare"), loadOf("untyped")
		nowhere.URL, bare.Bundle, untyped.InputType = "nowhere", "", 0
		for v, want := range map[*rpc.Load]string{
			new(loadOf("broken")): "there is no model.pkl", new(loadOf("huge")): "too much memory", &nowhere: "nothing is there",
			&bare: "the version has none", &untyped: "needs an input type",
		} {
			g.load(*v)
			if a := g.wantState(v.Model.Model, rpc.StateGone); !strings.Contains(a.Reason, want) {
				t.Errorf("%s: %q, want %q", v.Model.Model, a.Reason, want)
			}
		}
		g.load(loadOf("fine"))
		g.wantState("fine", rpc.StateReady)
		if got := r.metric(`topsail_host_loads_total{model="small",replica="m/0",result="failed",version="1"}`); got != 3 {
			t.Errorf("%v loads failed, want 3", got)
		}
	})
}

// A version whose bundle is another one by now is loaded anew.
func TestAnotherBundleOfTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		g.load(loadOf("a"))
		first := g.of("a").ID
		next := loadOf("a")
		next.Bundle = "sha256:" + strings.Repeat("cd", 32)
		g.load(next)
		f.wantSeen("+a -a +a")
		if a := g.wantState("a", rpc.StateReady); a.ID == first {
			t.Error("it has the id of the one before")
		}
	})
}

// A version that is registered again is loaded again, and announced as what it is.
func TestAnotherGenerationOfTheSameBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		v := loadOf("ann")
		for _, generation := range []string{"a", "a", "b@c"} {
			v.Generation = generation
			g.load(v)
			if a := g.wantState("ann", rpc.StateReady); a.Generation != generation {
				t.Errorf("it is announced as %q, want %q", a.Generation, generation)
			}
		}
		f.wantSeen("+ann -ann +ann")
	})
}

func TestAContainerOfAHostIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		g.load(loadOf("a"))
		f.nc.Close()
		pass(0)
		g.wantState("a", rpc.StateGone)
		g.wantState("small", rpc.StateLoading)
		g.load(loadOf("b")) // waits for a container
		next := r.fakeHost()
		pass(100 * ms)
		next.wantSeen("+b")
		g.wantState("b", rpc.StateReady)
		g.load(loadOf("a"))
		g.wantState("a", rpc.StateReady)
	})
}

// A container that does not answer LOAD is taken for hung.
func TestAContainerThatNeverLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		f.mute = true
		g.load(loadOf("a"))
		pass(holdWithin)
		if a := g.wantState("a", rpc.StateGone); !strings.Contains(a.Reason, "in time") {
			t.Errorf("the reason is %q", a.Reason)
		}
		if r.stalled != 1 || !f.dead() {
			t.Errorf("stalled %d times, dead: %v", r.stalled, f.dead())
		}
	})
}

// What nobody asks for any more when its turn comes is not loaded.
func TestAWishIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		f.slow["slow"] = wantedFor + time.Second
		g.load(loadOf("slow"))
		g.load(loadOf("b"))
		pass(2 * wantedFor)
		f.wantSeen("+slow")
	})
}

func TestAHostTakesOneContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, second := r.fakeHost(), r.fakeHost()
		if f.dead() || !second.dead() {
			t.Error("the second container was taken")
		}
	})
}

// A sidecar that stops answers what its hosted models have, and takes no more.
func TestAHostDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		f.do(slow(time.Second))
		g.load(loadOf("a"))
		batch := g.ask(g.of("a").ID, 5*time.Second, tagged(1))
		pass(0)
		r.stop()
		pass(100 * ms)
		g.wantState("a", rpc.StateDraining)
		pass(2 * time.Second)
		if got := g.answer(batch); got.Status != rpc.StatusOK {
			t.Errorf("status %v: %s", got.Status, got.Message)
		}
	})
}

// TestManyHostedModels is many versions and gateways in little memory: every query is answered
// by its own model, or told that it is not there, and the budget holds.
func TestManyHostedModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 86, nil) // the process and five versions
		f := r.fakeHost()
		var all sync.WaitGroup
		answered := make([]int, 4)
		for n := range answered {
			g := r.gateway()
			all.Go(func() {
				for i := range 60 {
					name := fmt.Sprintf("m%d", (i*7+n*3)%12)
					g.conn.Send(rpc.KindLoad, 0, rpc.AppendLoad(nil, loadOf(name)))
					time.Sleep(20 * ms)
					if a := g.of(name); a.State == rpc.StateReady {
						g.ask(a.ID, time.Second, tagged(float64(n*1000+i)))
					}
					time.Sleep(5 * ms)
				}
				time.Sleep(time.Second)
				for status, count := range g.statuses() {
					switch status {
					case rpc.StatusOK:
						answered[n] += count
					case rpc.StatusDraining, rpc.StatusUnknownModel:
					default:
						t.Errorf("%d queries ended with %v", count, status)
					}
				}
				if g.open != 0 {
					t.Errorf("%d queries were not answered", g.open)
				}
			})
		}
		all.Wait()
		for n, count := range answered {
			if count == 0 {
				t.Errorf("gateway %d got no answer", n)
			}
		}
		if f.most > 5 {
			t.Errorf("%d versions were held at a time", f.most)
		}
	})
}

// metric reads a series.
func (r *rig) metric(series string) float64 {
	r.t.Helper()
	for line := range strings.Lines(scrape(r.t, r.registry, "")) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			number, err := strconv.ParseFloat(value, 64)
			require.NoError(r.t, err)
			return number
		}
	}
	r.t.Errorf("there is no %s", series)
	return 0
}
