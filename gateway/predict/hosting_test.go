package predict

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

var (
	small = id("small", "1") // the host
	ann   = id("ann", "1")
	ann2  = id("ann", "2")
)

// host adds a replica of the host, which does with LOAD as hold says.
func (r *rig) host(name string, behave behaviour, hold func(*fake, rpc.Load)) *fake {
	r.Helper()
	f := &fake{name: name, behave: behave, versions: definitions("", small), maxFrame: r.maxFrame, hold: hold}
	f.ctx, f.kill = context.WithCancel(r.ctx)
	r.mu.Lock()
	r.replicas = append(r.replicas, f)
	r.mu.Unlock()
	r.resolve()
	return f
}

// holds loads a version, which takes so long.
func holds(took time.Duration) func(*fake, rpc.Load) {
	return func(f *fake, v rpc.Load) {
		time.Sleep(took)
		f.holdNow(v.Definition())
	}
}

// cannot refuses to load.
func cannot(why string) func(*fake, rpc.Load) {
	return func(f *fake, v rpc.Load) {
		f.say(rpc.Announcement{ID: 99, State: rpc.StateGone, Model: v.Model, Generation: v.Generation, Reason: why})
	}
}

func (f *fake) holdNow(v serving.Definition) {
	f.mu.Lock()
	i := slices.Index(f.versions, v)
	if i < 0 {
		i = len(f.versions)
		f.versions = append(f.versions, v)
	}
	f.mu.Unlock()
	f.say(rpc.Announcement{ID: uint32(i), State: rpc.StateReady, Model: v.ModelID, Generation: v.Generation})
}

// unload says that a version is gone.
func (f *fake) unload(v serving.ModelID) {
	f.mu.Lock()
	i := slices.IndexFunc(f.versions, func(d serving.Definition) bool { return d.ModelID == v })
	f.mu.Unlock()
	f.say(rpc.Announcement{ID: uint32(i), State: rpc.StateGone, Model: v})
}

// announceAll says anew what the replica runs.
func (f *fake) announceAll() { f.announce(rpc.StateReady) }

func (f *fake) say(a rpc.Announcement) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range f.conns {
		_ = conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, a))
	}
}

func (f *fake) load(frame rpc.Frame) error {
	list, err := rpc.ParseLoad(frame.Body)
	f.mu.Lock()
	f.loads = append(f.loads, list...)
	f.mu.Unlock()
	for _, v := range list {
		go f.hold(f, v)
	}
	return err
}

func (f *fake) version(i uint32) serving.ModelID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.versions[i].ModelID
}

// asksFor is how often a replica was asked to hold a version.
func (f *fake) asksFor(v serving.ModelID) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.loads {
		if l.Model == v {
			n++
		}
	}
	return n
}

// hosted registers an app for each model, of which the last version is current, and their
// host.
func hosted(models ...*serving.Model) *serving.Catalog {
	host := newModel(small)
	host.Serving = small.Version
	host.Versions["1"].Host, host.Versions["1"].InputType = &serving.HostSpec{MemoryMB: 64}, 0
	cat := newCatalog(nil, append(models, host)...)
	for _, m := range models {
		a := newApp(m.Name, m.Name)
		cat.Apps[a.Name] = a
		for _, v := range m.Versions {
			v.HostedBy, v.Container.Bundle = small.Model, "sha256:"+strings.Repeat("ab", 32)
		}
	}
	return cat
}

// ask asks an app, and says how long it took.
func (r *rig) ask(app string, x float64) (serving.Prediction, time.Duration) {
	r.Helper()
	return r.predict(of(app, x))
}

func of(app string, x float64) *serving.Query {
	q := newQuery(x)
	q.App = app
	return q
}

func TestAVersionIsLoadedWhenItIsAsked(t *testing.T) {
	bubble(t, func(t *rig) {
		t.wakes(nil)
		f := t.host("a", echoes(0), holds(20*time.Millisecond))
		t.set(hosted(newModel(ann)))
		if f.asksFor(ann) != 0 {
			t.Error("it was loaded before it was asked")
		}
		a, took := t.ask("ann", 1)
		t.wantOutput(a, 1)
		if took != 20*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		a, took = t.ask("ann", 2)
		t.wantOutput(a, 2)
		if took != 0 || f.asksFor(ann) != 1 {
			t.Errorf("the second took %v, and the host was asked %d times", took, f.asksFor(ann))
		}
		f.unload(ann)
		t.settle()
		a, took = t.ask("ann", 3)
		t.wantOutput(a, 3)
		if took != 20*time.Millisecond {
			t.Errorf("after it was unloaded it took %v", took)
		}
		const questions = "topsail_gateway_hosted_questions_total"
		if warm, cold := t.metric(questions+`{state="warm"}`), t.metric(questions+`{state="cold"}`); warm != 1 || cold != 2 {
			t.Errorf("%v warm and %v cold", warm, cold)
		}
	})
}

// A version that makes room for another as soon as it has answered is not loaded again
// for nobody.
func TestAnAnsweredVersionStaysUnloaded(t *testing.T) {
	bubble(t, func(t *rig) {
		t.wakes(nil)
		f := t.host("a", echoes(0), holds(20*time.Millisecond))
		t.set(hosted(newModel(ann)))
		all := []*result{t.later(of("ann", 1))}
		time.Sleep(10 * time.Millisecond)
		all = append(all, t.later(of("ann", 2))) // the load is under way
		for i, l := range all {
			l.wait()
			t.wantOutput(l.Prediction, float64(1+i))
		}
		f.unload(ann)
		time.Sleep(10 * time.Second)
		if n := f.asksFor(ann); n != 1 {
			t.Errorf("it was loaded %d times", n)
		}
	})
}

// Each version has one replica that it belongs to; while that cannot hold it, it is the
// next one.
func TestVersionsAreSpreadOverTheHost(t *testing.T) {
	bubble(t, func(t *rig) {
		t.wakes(nil)
		var models []*serving.Model
		for i := range 40 {
			models = append(models, newModel(id(fmt.Sprint("m", i), "1")))
		}
		hosts := []*fake{t.host("a", echoes(0), holds(0)), t.host("b", echoes(0), holds(0)), t.host("c", echoes(0), holds(0))}
		t.set(hosted(models...))
		for i, m := range models {
			a, _ := t.ask(m.Name, float64(i))
			t.wantOutput(a, float64(i))
		}
		for _, f := range hosts {
			if n := len(f.loads); n < 5 || n > 25 {
				t.Errorf("replica %s holds %d of 40 versions", f.name, n)
			}
		}
		time.Sleep(loadEvery) // one that was just asked for is not asked for again
		t.stop(hosts[0])
		for i, m := range models {
			a, _ := t.ask(m.Name, float64(100+i))
			t.wantOutput(a, float64(100+i))
		}
		for _, m := range models {
			if n := hosts[1].asksFor(id(m.Name, "1")) + hosts[2].asksFor(id(m.Name, "1")); n != 1 {
				t.Errorf("%s was loaded %d times by those that stayed", m.Name, n)
			}
		}
	})
}

func TestAVersionThatCannotBeLoaded(t *testing.T) {
	bubble(t, func(t *rig) {
		t.wakes(nil)
		f := t.host("a", echoes(0), cannot("there is no model.pkl"))
		t.set(hosted(newModel(ann)))
		for i := range 2 {
			a, took := t.ask("ann", float64(i))
			t.wantDefault(a, serving.ContainerError)
			if took != 0 || !strings.Contains(a.Explanation, "there is no model.pkl") {
				t.Errorf("after %v: %s", took, a.Explanation)
			}
		}
		if f.asksFor(ann) != 1 {
			t.Errorf("the host was asked %d times", f.asksFor(ann))
		}
		time.Sleep(10 * time.Second) // it may be mended by now
		f.hold = holds(0)
		a, _ := t.ask("ann", 3)
		t.wantOutput(a, 3)
	})
}

// Where one replica cannot hold a version, another one is asked at once.
func TestTheNextReplicaIsAsked(t *testing.T) {
	bubble(t, func(t *rig) {
		t.wakes(nil)
		var models []*serving.Model
		for i := range 8 {
			models = append(models, newModel(id(fmt.Sprint("m", i), "1")))
		}
		full := t.host("a", echoes(0), func(f *fake, v rpc.Load) { time.Sleep(5 * time.Millisecond); cannot("no room")(f, v) })
		t.host("b", echoes(0), holds(5*time.Millisecond))
		t.set(hosted(models...))
		for i := range 3 {
			for _, m := range models {
				a, took := t.ask(m.Name, float64(i))
				t.wantOutput(a, float64(i))
				if took > 10*time.Millisecond {
					t.Errorf("%s took %v", m.Name, took)
				}
			}
			time.Sleep(10 * time.Second)
		}
		if len(full.loads) == 0 {
			t.Error("the one without room was never asked")
		}
	})
}

// Queries that are given up leave nothing that would have the version loaded.
func TestARefusedVersionIsLoadedForNobody(t *testing.T) {
	bubble(t, func(t *rig) {
		t.wakes(nil)
		no := func(f *fake, v rpc.Load) { time.Sleep(20 * time.Millisecond); cannot("no room")(f, v) }
		a, b := t.host("a", echoes(0), no), t.host("b", echoes(0), no)
		t.set(hosted(newModel(ann)))
		one := t.later(of("ann", 1))
		time.Sleep(10 * time.Millisecond)
		two := t.later(of("ann", 2))
		one.wait()
		two.wait()
		t.wantDefault(two.Prediction, serving.ContainerError)
		time.Sleep(time.Minute)
		if n, m := a.asksFor(ann), b.asksFor(ann); n != 1 || m != 1 {
			t.Errorf("the replicas were asked %d and %d times", n, m)
		}
	})
}

// A new version that cannot be loaded takes no queries from the one before.
func TestACurrentVersionTakesOverWhenItIsLoaded(t *testing.T) {
	bubble(t, func(t *rig) {
		t.wakes(nil)
		fine := false
		f := t.host("a", func(q arrival) (rpc.Answer, time.Duration) {
			if q.version == ann2 {
				return number(-q.x), 0
			}
			return number(q.x), 0
		}, func(f *fake, v rpc.Load) {
			if v.Model == ann2 && !fine {
				cannot("it is broken")(f, v)
				return
			}
			holds(10*time.Millisecond)(f, v)
		})
		t.set(hosted(newModel(ann)))
		a, _ := t.ask("ann", 1)
		t.wantOutput(a, 1)
		both := newModel(ann, ann2)
		both.Serving = ann.Version
		t.set(hosted(both))
		for i := range 3 {
			a, _ = t.ask("ann", float64(2+i))
			t.wantOutput(a, float64(2+i))
			t.settle()
		}
		if f.asksFor(ann2) == 0 {
			t.Error("the current version was never tried")
		}
		fine = true
		time.Sleep(10 * time.Second)
		t.ask("ann", 7)
		time.Sleep(time.Second)
		a, _ = t.ask("ann", 8)
		t.wantOutput(a, -8)
		f.unload(ann2)
		t.settle()
		a, _ = t.ask("ann", 9) // it can be loaded, so it is not passed over any more
		t.wantOutput(a, -9)
	})
}

// Without a replica of the host, that is what is woken.
func TestTheHostIsWoken(t *testing.T) {
	bubble(t, func(t *rig) {
		b := t.wakes(nil)
		cat := hosted(newModel(ann))
		cat.Apps["ann"].SLO = serving.Duration(3 * time.Second)
		t.set(cat)
		var all sync.WaitGroup
		all.Go(func() {
			a, took := t.ask("ann", 1)
			t.wantOutput(a, 1)
			if took < time.Second {
				t.Errorf("it took %v", took)
			}
		})
		time.Sleep(1500 * time.Millisecond)
		if len(b.times(small)) == 0 || len(b.times(ann)) != 0 {
			t.Errorf("the host was woken at %v, and the version at %v", b.times(small), b.times(ann))
		}
		t.host("a", echoes(0), holds(0))
		all.Wait()
	})
}

// A replica that is short of capacity gets company.
func TestAHotVersionIsSpread(t *testing.T) {
	bubble(t, func(t *rig) {
		t.wakes(nil)
		full := fails(rpc.StatusFull, "full")
		a, b := t.host("a", full, holds(0)), t.host("b", full, holds(0))
		t.set(hosted(newModel(ann)))
		for i := range 4 {
			t.ask("ann", float64(i))
			time.Sleep(time.Second)
		}
		if a.asksFor(ann) != 1 || b.asksFor(ann) != 1 {
			t.Errorf("the replicas were asked %d and %d times", a.asksFor(ann), b.asksFor(ann))
		}
	})
}
