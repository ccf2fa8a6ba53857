package clipper

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/change"
)

// memory is a store without a disk. Where it is told to, others change the catalog first.
type memory struct {
	mu     sync.Mutex
	cat    *serving.Catalog
	before []catalog.Change // of others, one before each Apply
	away   error
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
	next, err := catalog.Apply(m.cat, change, ifRevision)
	if err == nil {
		m.cat = next
	}
	return next, err
}

// handler serves the requests to somebody who may do everything.
func handler(store change.Store, replicas func() []serving.Endpoint) http.Handler {
	h := Handler(System{Store: store, Replicas: replicas, Check: func(*serving.Version) error { return nil }})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Caller{Name: "ada", Role: serving.RoleAdmin})))
	})
}

// having is a store with app a of doubles, which links model m, with versions 1 and 2
// (the current one), beside app b of strings and model s of strings.
func having(t *testing.T) *memory {
	t.Helper()
	m := &memory{cat: &serving.Catalog{}}
	version := func(name, version string, input serving.InputType) catalog.Change {
		return catalog.PutVersion{Version: serving.Version{ModelID: serving.ModelID{Model: name, Version: version}, InputType: input}}
	}
	for _, c := range []catalog.Change{
		version("m", "1", serving.Doubles), version("m", "2", serving.Doubles), version("n", "1", serving.Doubles), version("s", "1", serving.Strings),
		catalog.PutApp{App: serving.App{Name: "a", InputType: serving.Doubles, DefaultOutput: `"x"<`, SLO: serving.Duration(1e8), Models: []string{"m"}}},
		catalog.PutApp{App: serving.App{Name: "b", InputType: serving.Strings, SLO: serving.Duration(2e7)}},
	} {
		next, err := catalog.Apply(m.cat, c, 0)
		require.NoError(t, err)
		m.cat = next
	}
	return m
}

func nobody() []serving.Endpoint { return nil }

func send(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func post(h http.Handler, name, body string) (int, string) {
	w := send(h, "POST", "/admin/"+name, body)
	return w.Code, w.Body.String()
}
