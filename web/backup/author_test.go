package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/kinds"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// author changes what is its own, one step after the other, beside others who change theirs, and
// remembers what was acknowledged.
type author struct {
	name    string
	steps   []int
	place   *place
	learner *state.App
	acks    chan<- struct{} // gets one for each step that was acknowledged

	mu      sync.Mutex          // guards the following
	past    map[string][]string // what each thing was made to be, "" where it is not there; the last one may not be yet
	known   map[string]int      // how many of these are acknowledged
	changes int                 // of the catalog that it signed
}

// newAuthor is an author with an app, "learns", that it never deletes.
func newAuthor(t fatal, p *place, name string, steps []int, acks chan<- struct{}) *author {
	t.Helper()
	app := serving.App{Name: name + "-learns", InputType: serving.Doubles, SLO: serving.Duration(time.Second), Models: []string{name + "-base"}, Policy: serving.PolicySpec{Kind: serving.PolicyExp3, Scope: serving.ScopeApp}}
	base := serving.Version{ModelID: baseOf(name), InputType: serving.Doubles}
	w := &author{name: name, steps: steps, place: p, acks: acks, past: map[string][]string{}, known: map[string]int{}}
	w.learner = learnerOf(t, &app, base.ModelID)
	require.NoError(t, w.change("app "+app.Name, strconv.FormatInt(app.SLO.Std().Milliseconds(), 10), catalog.All{catalog.PutVersion{Version: base}, catalog.PutApp{App: app}}))
	return w
}

// baseOf is the model that an author's app asks.
func baseOf(name string) serving.ModelID { return serving.ModelID{Model: name + "-base", Version: "1"} }

func learnerOf(t fatal, app *serving.App, model serving.ModelID) *state.App {
	t.Helper()
	policy, err := kinds.New(app, nil)
	require.NoError(t, err)
	return state.NewApp(app.Name, app.Policy, policy.(selection.Learner), []serving.Definition{{ModelID: model}})
}

// run takes the steps. It ends with the first one that fails.
func (w *author) run(ctx context.Context) error {
	for n, step := range w.steps {
		if err := w.step(ctx, n+1, step); err != nil {
			return fmt.Errorf("%s, step %d of kind %d: %w", w.name, n+1, step, err)
		}
		w.acks <- struct{}{}
	}
	return nil
}

// stepKinds is how many kinds of steps there are.
const stepKinds = 11

func (w *author) step(ctx context.Context, n, kind int) error {
	number := strconv.Itoa(n)
	app := func(name string) catalog.Change {
		return catalog.PutApp{App: serving.App{Name: w.name + name, InputType: serving.Doubles, SLO: serving.Duration(time.Duration(n) * time.Millisecond)}}
	}
	switch kind {
	case 0:
		return w.change("app "+w.name+"-app", number, app("-app"))
	case 1:
		return w.remove("app "+w.name+"-app", catalog.DeleteApp{Name: w.name + "-app"})
	case 2: // what one change makes is there together, or not at all
		return w.change("app "+w.name+"-left", number, catalog.All{app("-left"), app("-right")})
	case 3:
		return w.deploy(ctx, n)
	case 4:
		for made := n; made > 0; made-- {
			id := serving.ModelID{Model: w.name, Version: strconv.Itoa(made)}
			if what := "version " + id.String(); w.is(what) != "" {
				return w.remove(what, catalog.DeleteVersion{ID: id})
			}
		}
		return nil
	case 5:
		if w.is("key "+w.name) != "" {
			return nil
		}
		return w.change("key "+w.name, "there", catalog.AddKey{Key: w.key()})
	case 6:
		return w.remove("key "+w.name, catalog.RevokeKey{ID: w.key().ID})
	case 7: // feedback, through the gateway's own way of learning
		steps, _ := strconv.Atoi(w.is("learned " + w.name + "-learns"))
		return w.attempt("learned "+w.name+"-learns", strconv.Itoa(steps+1), func() error {
			id := baseOf(w.name)
			f := &selection.Feedback{QueryID: int64(n), Loss: 0.5, Outcomes: []selection.Outcome{{ModelID: id, Loss: 0.5, Judged: true}}}
			return w.place.states.Train(ctx, w.learner, []state.Item{{Feedback: f}})[0].Err
		})
	case 8: // a state of a user whose name is none
		key := serving.StateKey{App: w.name + "-learns", Kind: "other", User: "\x00 é"}
		return w.attempt("user "+w.name, number, func() error {
			_, revision, err := w.place.LoadState(ctx, key)
			if err == nil {
				_, err = w.place.SwapState(ctx, key, revision, []byte(number))
			}
			return err
		})
	case 9:
		answers, _ := strconv.Atoi(w.is("usage " + w.name + "-learns"))
		return w.attempt("usage "+w.name+"-learns", strconv.Itoa(answers+n), func() error {
			return w.place.AddUsage(ctx, serving.UsageReport{Writer: w.name, Number: uint64(n), Revision: w.place.store.Catalog().Revision, Counted: []serving.Usage{
				{Key: serving.UsageKey{App: w.name + "-learns"}, Answers: uint64(n), Micros: 7, Least: 5 * time.Microsecond, Most: time.Second},
			}})
		})
	default:
		name := w.name + "-" + number
		return w.attempt("entry "+name, "there", func() error {
			return w.place.AddAudit(ctx, serving.AuditEntry{At: time.Now().UTC(), Who: "somebody", Action: "restart", Kind: "replica", Name: name})
		})
	}
}

// deploy stores a bundle and makes a version of it.
func (w *author) deploy(ctx context.Context, n int) error {
	data, digest, err := packed(fmt.Sprint(w.name, n))
	if err != nil {
		return err
	}
	err = w.attempt("bundle "+digest, "there", func() error {
		_, _, err := w.place.Bundles.Put(ctx, bytes.NewReader(data))
		return err
	})
	if err != nil {
		return err
	}
	v := serving.Version{ModelID: serving.ModelID{Model: w.name, Version: strconv.Itoa(n)}, InputType: serving.Doubles}
	v.Container.Bundle = digest
	return w.change("version "+v.ModelID.String(), digest, catalog.PutVersion{Version: v})
}

// packed is a bundle of its own for each text.
func packed(text string) (data []byte, digest string, err error) {
	var to bytes.Buffer
	m := &bundle.Manifest{Runtime: "python", Python: "3.11", Entry: "model.pkl"}
	if err := bundle.Write(&to, m, fstest.MapFS{"model.pkl": {Data: []byte(text)}}); err != nil {
		return nil, "", err
	}
	digest, err = bundle.Digest(bytes.NewReader(to.Bytes()))
	return to.Bytes(), digest, err
}

func (w *author) key() serving.Key {
	hash := sha256.Sum256([]byte(w.name))
	return serving.Key{ID: hex.EncodeToString(hash[:5]), Name: w.name, Role: serving.RoleViewer, Hash: hash[:]}
}

// change makes a thing what it is to be, in the catalog.
func (w *author) change(what, value string, change catalog.Change) error {
	err := w.attempt(what, value, func() error {
		for {
			_, err := w.place.store.Apply(context.Background(), catalog.Signed{Change: change, By: serving.Author{Who: w.name}}, 0)
			if !errors.Is(err, catalog.ErrConflict) {
				return err
			}
		}
	})
	if err == nil {
		w.mu.Lock()
		w.changes++
		w.mu.Unlock()
	}
	return err
}

// remove removes a thing that is there.
func (w *author) remove(what string, change catalog.Change) error {
	if w.is(what) == "" {
		return nil
	}
	return w.change(what, "", change)
}

// is what a thing was made to be last; only the author changes it.
func (w *author) is(what string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.past[what]) == 0 {
		return ""
	}
	return w.past[what][len(w.past[what])-1]
}

// attempt notes what a thing is to be before it is, and that it is.
func (w *author) attempt(what, value string, do func() error) error {
	w.mu.Lock()
	if w.past[what] == nil {
		w.past[what], w.known[what] = []string{""}, 1
	}
	w.past[what] = append(w.past[what], value)
	w.mu.Unlock()
	if err := do(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[what] = len(w.past[what])
	return nil
}

// acknowledged is what holds at a moment: of each thing how many values, and of the author how
// many changes of the catalog.
type acknowledged struct {
	known   map[string]int
	changes int
}

func (w *author) acknowledged() acknowledged {
	w.mu.Lock()
	defer w.mu.Unlock()
	return acknowledged{maps.Clone(w.known), w.changes}
}

// within says what a place lacks of that which was acknowledged then: each thing has to be what
// it was, or what it has become since.
func (w *author) within(then acknowledged, now map[string]string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for what, past := range w.past {
		allowed := past[max(0, then.known[what]-1):]
		if !slices.Contains(allowed, now[what]) {
			return fmt.Errorf("%s is %q, and may be %q", what, now[what], allowed)
		}
	}
	if left, right := now["app "+w.name+"-left"], now["app "+w.name+"-right"]; left != right {
		return fmt.Errorf("of one change there are %q and %q", left, right)
	}
	if made, _ := strconv.Atoi(now["changes "+w.name]); made < then.changes {
		return fmt.Errorf("%d of %d changes by %s are in the audit log", made, then.changes, w.name)
	}
	return nil
}

// things are all that authors change in a place, as they name it.
func (p *place) things(t fatal) map[string]string {
	t.Helper()
	ctx, all := context.Background(), map[string]string{}
	must := func(err error) {
		require.NoError(t, err)
	}
	cat, err := p.store.Apply(ctx, catalog.All{}, 0)
	must(err)
	for name, app := range cat.Apps {
		all["app "+name] = strconv.FormatInt(app.SLO.Std().Milliseconds(), 10)
		usage, err := p.UsageOf(ctx, []serving.UsageKey{{App: name}})
		must(err)
		if len(usage) > 0 && usage[0].Answers > 0 {
			all["usage "+name] = strconv.FormatUint(usage[0].Answers, 10)
		}
	}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			all["version "+v.ModelID.String()] = v.Container.Bundle
		}
	}
	for _, k := range cat.Keys {
		all["key "+k.Name] = "there"
	}
	must(p.EachState(ctx, func(key serving.StateKey, text []byte) error {
		if key.Kind == "other" {
			all["user "+key.App[:len(key.App)-len("-learns")]] = string(text)
		} else if s, err := selection.Decode(text, key.Kind); err == nil && key.User == "" {
			all["learned "+key.App] = strconv.FormatFloat(s.Steps, 'f', -1, 64)
		}
		return nil
	}))
	entries, err := p.entries(ctx)
	must(err)
	changes := map[string]int{}
	for _, e := range entries {
		changes[e.Who]++
		if e.Kind == "replica" {
			all["entry "+e.Name] = "there"
		}
	}
	for who, n := range changes {
		all["changes "+who] = strconv.Itoa(n)
	}
	stored, err := p.Bundles.Stored(ctx)
	must(err)
	for _, b := range stored {
		content, err := p.Bundles.Open(ctx, b.Digest)
		must(err)
		digest, err := bundle.Digest(content)
		must(errors.Join(err, content.Close()))
		all["bundle "+b.Digest] = cmp.Or(map[bool]string{true: "there"}[digest == b.Digest], "damaged")
	}
	return all
}

// drawSteps are those of an author.
func drawSteps(t *rapid.T, most int) []int {
	return rapid.SliceOfN(rapid.IntRange(0, stepKinds-1), 0, most).Draw(t, "steps")
}
