package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/auth"
)

// world is a system without a disk, with keys of every role, and the API in front.
type world struct {
	backupErr error // of Make
	backups   int   // that were made

	*memory
	api     *api
	handler http.Handler
	keys    map[string]string // secrets by name
	now     time.Time
}

// memory is what the system keeps and does.
type memory struct {
	mu        sync.Mutex
	cat       *serving.Catalog
	before    []catalog.Change // of others, one before each Apply
	away      error
	late      error  // of changes that have been made
	meanwhile func() // before a change
	signed    []serving.Author
	log       []serving.AuditEntry
	replicas  []Replica
	bundles   map[string][]byte // manifests
	forgot    []string
	used      map[serving.UsageKey][]serving.Usage
}

func (m *memory) Catalog() *serving.Catalog {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cat
}

func (m *memory) Apply(_ context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away != nil {
		return nil, m.away
	}
	if len(m.before) > 0 {
		m.cat, _ = catalog.Apply(m.cat, m.before[0], 0)
		m.before = m.before[1:]
	}
	if m.meanwhile != nil {
		m.meanwhile()
	}
	next, err := catalog.Apply(m.cat, change, ifRevision)
	if err != nil {
		return nil, err
	}
	m.cat = next
	m.signed = append(m.signed, catalog.Author(change))
	return next, m.late
}

func (m *memory) Watch(ctx context.Context, fn func(*serving.Catalog)) error {
	fn(m.Catalog())
	<-ctx.Done()
	return context.Cause(ctx)
}

func (m *memory) AddAudit(_ context.Context, entry serving.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away != nil {
		return m.away
	}
	entry.ID = fmt.Sprintf("%08d", len(m.log)+1)
	m.log = append(m.log, entry)
	return nil
}

func (m *memory) AuditLog(_ context.Context, query serving.AuditQuery) ([]serving.AuditEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []serving.AuditEntry
	for _, e := range slices.Backward(m.log) {
		if m := query.Model; m != "" && !(e.Kind == "model" && e.Name == m || e.Kind == "version" && e.Action != "update" && strings.HasPrefix(e.Name, m+":")) {
			continue
		}
		fits := cmp.Or(query.Kind, e.Kind) == e.Kind && cmp.Or(query.Name, e.Name) == e.Name && cmp.Or(query.Who, e.Who) == e.Who
		if fits && (query.Before == "" || e.ID < query.Before) && len(found) < query.Limit {
			found = append(found, e)
		}
	}
	return found, m.away
}

func (m *memory) Learned(_ context.Context, app, user, about string) (*serving.Learning, error) {
	if app == "b" {
		return nil, errors.New("the store is unavailable")
	}
	models := []serving.ModelLearning{
		{ModelID: serving.ModelID{Model: "m", Version: "1"}, Share: 0.25, Worth: 0.5, Judged: 8, Loss: 0.125},
		{ModelID: serving.ModelID{Model: "gone", Version: "3"}, Share: 0.75},
	}
	return &serving.Learning{App: app, Policy: "exp3", User: user, Context: about, Steps: 3, Models: models}, nil
}

func (m *memory) Forget(_ context.Context, app, user, about string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgot = append(m.forgot, app+"/"+user+"/"+about)
	return nil
}

// UsageOf knows something of what is used.
func (m *memory) UsageOf(_ context.Context, objects []serving.UsageKey) (all []serving.Usage, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, object := range objects {
		all = append(all, m.used[object]...)
	}
	return all, m.away
}

// measured knows what versions "2" did.
type measured struct{ Traffic }

func (measured) Performance(definitions []serving.Definition) *Performance {
	if definitions[0].Version != "2" {
		return nil
	}
	half, micros := 0.5, 10_250.0
	return &Performance{Since: time.Unix(1e9, 0).UTC(), Answers: 4, Errors: &half, Batches: 2, BatchMean: &half, P50: &micros, P99: &micros, Throughput: &micros}
}

func (measured) Streams() map[string]*StreamNow {
	lag := int64(7)
	return map[string]*StreamNow{"wine": {Processes: 1, Lag: &lag, Conditions: []string{"cannot commit results"}}}
}

func (m *memory) Replicas() []Replica                     { return m.replicas }
func (m *memory) Restart(context.Context, string) error   { return nil }
func (m *memory) Drain(_ context.Context, _ string) error { return nil }
func (m *memory) Ended(context.Context, string) (serving.ModelID, error) {
	return serving.ModelID{}, ErrNoReplica
}
func (m *memory) Logs(context.Context, string, LogQuery) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("line\n")), nil
}

// fakeBundles keeps bundles: their content is their manifest.
type fakeBundles struct{ *memory }

func (s fakeBundles) Put(_ context.Context, r io.Reader) (Artifact, bool, error) {
	content, err := io.ReadAll(r)
	switch {
	case err != nil:
		return Artifact{}, false, err
	case len(content) > 1000:
		return Artifact{}, false, fmt.Errorf("%w: at most 1000 bytes are accepted", ErrBundleTooLarge)
	case !json.Valid(content):
		return Artifact{}, false, fmt.Errorf("%w: it is not an archive", ErrBundleInvalid)
	}
	digest := fmt.Sprintf("sha256:%064x", len(content))
	s.mu.Lock()
	_, there := s.bundles[digest]
	s.bundles[digest] = content
	s.mu.Unlock()
	a, err := s.Get(context.Background(), digest)
	return a, !there, err
}

func (s fakeBundles) Get(_ context.Context, digest string) (Artifact, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.bundles[digest]
	switch {
	case !ok:
		return Artifact{}, fmt.Errorf("%w: %s", ErrNoBundle, digest)
	case content == nil:
		return Artifact{}, fmt.Errorf("%w: %s was damaged", ErrBundleInvalid, digest)
	}
	return Artifact{Digest: digest, Size: int64(len(content)), Created: time.Unix(1e9, 0).UTC(), Manifest: content}, nil
}

func (s fakeBundles) Open(_ context.Context, digest string) (io.ReadSeekCloser, error) {
	a, err := s.Get(context.Background(), digest)
	return content{bytes.NewReader(a.Manifest)}, err
}

func (fakeBundles) Address(context.Context, string, time.Time) (string, error) {
	return "?expires=1&signature=good", nil
}

func (fakeBundles) Signed(_ string, query url.Values, _ time.Time) error {
	if query.Get("signature") != "good" {
		return errors.New("the address is not signed by this cluster")
	}
	return nil
}

type content struct{ *bytes.Reader }

func (content) Close() error { return nil }

func (s fakeBundles) List(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.bundles)), nil
}

func (s fakeBundles) Delete(_ context.Context, digest string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.bundles, digest)
	return nil
}

// having is a world with app a of doubles, which links model m, with versions 1 and 2
// (the current one), and app b of doubles, which links model n; beside model free, which
// nobody links. Keys are admin, deployer, operator, viewer and query, and alice, who
// deploys app a, and bob, who views app b.
func having(t testing.TB) *world {
	t.Helper()
	w := &world{now: time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC), keys: map[string]string{}}
	w.memory = &memory{cat: &serving.Catalog{}, bundles: map[string][]byte{}}
	version := func(name, version string) catalog.Change {
		v := serving.Version{ModelID: serving.ModelID{Model: name, Version: version}, InputType: serving.Doubles, Replicas: 1}
		v.Container.Command, v.Container.Env = []string{"python", "m.py"}, map[string]string{"TOKEN": "s3cret"}
		return catalog.PutVersion{Version: v}
	}
	w.must(t, version("m", "1"), version("m", "2"), version("n", "1"), version("free", "1"),
		catalog.PutApp{App: serving.App{Name: "a", InputType: serving.Doubles, DefaultOutput: `"x"<`, SLO: serving.Duration(1e8), Models: []string{"m"}}},
		catalog.PutApp{App: serving.App{Name: "b", InputType: serving.Doubles, SLO: serving.Duration(2e7), Models: []string{"n"}}})
	for _, role := range []serving.Role{serving.RoleAdmin, serving.RoleDeployer, serving.RoleOperator, serving.RoleViewer, serving.RoleQuery} {
		w.addKey(t, string(role), role)
	}
	w.addKey(t, "alice", serving.RoleDeployer, "a")
	w.addKey(t, "bob", serving.RoleViewer, "b")
	guard := auth.New(auth.Config{Catalog: w.Catalog, Require: true, Now: func() time.Time { return w.now }})
	served := New(&System{
		Mode: "cluster", Version: "0.1", Gateway: func() string { return "http://127.0.0.1:1337" },
		Store: w.memory, Audit: w.memory, Usage: w.memory, Learning: w.memory, Replicas: w.memory, Traffic: measured{}, Artifacts: fakeBundles{w.memory}, Backups: w,
		Job: func(_ context.Context, id serving.ModelID, secrets bool) (Job, error) {
			return Job{Kind: "nomad", Text: fmt.Sprintf("job %v, secrets: %t", id, secrets)}, nil
		},
		TOML: func(cat *serving.Catalog) ([]byte, error) {
			return fmt.Appendf(nil, "# %d apps, TOKEN is %s\n", len(cat.Apps), cat.Models["m"].Versions["1"].Container.Env["TOKEN"]), nil
		},
	}, guard, Options{Now: func() time.Time { return w.now }, CheckBundle: func(manifest json.RawMessage) error {
		if bytes.Contains(manifest, []byte("2.7")) {
			return errors.New("the bundle is for Python 2.7, and there is 3.11; build it with that")
		}
		return nil
	}})
	w.api, w.handler = served.api, guard.Handler(served)
	return w
}

func (w *world) must(t testing.TB, changes ...catalog.Change) {
	t.Helper()
	for _, c := range changes {
		if _, err := w.Apply(t.Context(), c, 0); err != nil {
			t.Fatal(err)
		}
	}
	w.signed = nil
}

func (w *world) addKey(t testing.TB, name string, role serving.Role, apps ...string) {
	t.Helper()
	k, secret := serving.NewKey()
	k.Name, k.Role, k.Apps, k.Created = name, role, apps, w.now
	w.must(t, catalog.AddKey{Key: *k})
	w.keys[name] = secret
}

// ask sends a request by the admin. What follows the body are headers: names and values.
func (w *world) ask(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	return w.askBy("admin", method, path, body, headers...)
}

// askBy sends a request with the key of a name, or none.
func (w *world) askBy(name, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/api/v1"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if secret := w.keys[name]; secret != "" {
		r.Header.Set("X-Api-Key", secret)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

// expect holds an answer against a status and parts of its body; those after "!" must
// not be there.
func expect(t testing.TB, answer *httptest.ResponseRecorder, status int, parts ...string) {
	t.Helper()
	body, not := answer.Body.String(), false
	if answer.Code != status {
		t.Errorf("got %d %s, want %d", answer.Code, body, status)
	}
	for _, part := range parts {
		if part == "!" {
			not = true
		} else if strings.Contains(body, part) == not {
			t.Errorf("got %d %s, looking for %q", answer.Code, body, part)
		}
	}
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if got := answer.Header().Get(name); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if answer.Code >= 400 {
		expectProblem(t, answer)
	}
}

func expectProblem(t testing.TB, answer *httptest.ResponseRecorder) {
	t.Helper()
	var p struct {
		Type, Title, Detail, Code string
		Status                    int
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil || answer.Header().Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%d %s is no problem: %v", answer.Code, answer.Body, err)
	}
	if p.Type == "" || p.Title == "" || p.Detail == "" || p.Code == "" || p.Status != answer.Code {
		t.Errorf("the problem lacks something: %s", answer.Body)
	}
}

// expectCode holds a problem against its status and code.
func expectCode(t testing.TB, answer *httptest.ResponseRecorder, status int, code string, parts ...string) {
	t.Helper()
	expect(t, answer, status, append([]string{`"code":` + strconv.Quote(code)}, parts...)...)
}

// read decodes an answer.
func read[T any](t testing.TB, answer *httptest.ResponseRecorder) (v T) {
	t.Helper()
	if err := json.Unmarshal(answer.Body.Bytes(), &v); err != nil {
		t.Fatalf("%d %s: %v", answer.Code, answer.Body, err)
	}
	return v
}
