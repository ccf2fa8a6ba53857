package inflight

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/web/problem"
)

// outer is an answer within the Handler's, as for one that is kept.
type outer struct{ http.ResponseWriter }

func (o outer) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// serve answers one request under a budget, and returns what is used of it meanwhile.
func serve(t *testing.T, b *budget.Budget, method string, body io.Reader, do func(w http.ResponseWriter, r *http.Request) error) (used int64, err error) {
	t.Helper()
	metrics := obs.NewRegistry()
	m := New(b, metrics)
	before := b.Used()
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err = do(outer{w}, r)
		used = b.Used() - before
		if m.held.Load() != used {
			t.Errorf("management says that it has %d of %d", m.held.Load(), used)
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/", body))
	if b.Used() != before || m.held.Load() != 0 {
		t.Errorf("%d are used after the answer, and %d before", b.Used(), before)
	}
	if err != nil {
		p, ok := errors.AsType[*problem.Problem](err)
		if !ok || p.Status != 503 || p.Header.Get("Retry-After") == "" || p.Code != "no_memory" {
			t.Errorf("refused as %v", err)
		}
		shown := httptest.NewRecorder()
		metrics.Handler().ServeHTTP(shown, httptest.NewRequest("GET", "/metrics", nil))
		if !strings.Contains(shown.Body.String(), "topsail_management_refused_total 1\n") {
			t.Error("it is not counted")
		}
	}
	return used, err
}

func TestBodies(t *testing.T) {
	for _, tt := range []struct {
		name        string
		limit, size int
		used        int64 // at most
		refused     bool
	}{
		{"empty", 1, 0, 0, false},
		{"small, and nothing is left", 1, small - 1, 0, false},
		{"large", 1 << 20, 100_000, 400_000, false},
		{"large, and nothing is left", 1, 100_000, 0, true},
		{"larger than all", 50_000, 100_000, 50_000, true},
	} {
		text := strings.Repeat("x", tt.size)
		for name, body := range map[string]io.Reader{"": strings.NewReader(text), " by bytes": iotest.OneByteReader(strings.NewReader(text)), " by halves": iotest.HalfReader(strings.NewReader(text))} {
			used, err := serve(t, budget.New(int64(tt.limit)), "POST", body, func(w http.ResponseWriter, r *http.Request) error {
				got, err := ReadAll(w, r.Body)
				if err == nil && string(got) != text {
					t.Errorf("%s%s: %d bytes came", tt.name, name, len(got))
				}
				return err
			})
			if used > tt.used || (err != nil) != tt.refused {
				t.Errorf("%s%s: %d are used: %v", tt.name, name, used, err)
			}
			if tt.size > 2*small && err == nil && used < int64(tt.size) {
				t.Errorf("%s%s: only %d are used", tt.name, name, used)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := ReadAll(httptest.NewRecorder(), iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// An answer to a change is never refused: the change is done.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		method  string
		n       int
		used    int64
		refused bool
	}{
		{"GET", small, 0, false}, {"GET", 50_000, 100_000, false}, {"GET", 200_000, 0, true}, {"HEAD", 200_000, 0, true},
		{"POST", small, 0, false}, {"POST", 50_000, 100_000, false}, {"POST", 200_000, 0, false}, {"DELETE", 200_000, 0, false},
	} {
		used, err := serve(t, budget.New(200_000), tt.method, nil, func(w http.ResponseWriter, _ *http.Request) error { return Answer(w, tt.n) })
		if used != tt.used || (err != nil) != tt.refused {
			t.Errorf("%s of %d: %d are used: %v", tt.method, tt.n, used, err)
		}
	}
	if err := Answer(httptest.NewRecorder(), 1<<40); err != nil {
		t.Errorf("without a budget: %v", err)
	}
}
