package api

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const small = `{"name":"c","input_type":"d","latency_slo_micros":1000}`

func TestSentAgain(t *testing.T) {
	w := having(t)
	first := w.ask("POST", "/apps", small, "Idempotency-Key", "k1")
	expect(t, first, 201)
	again := w.ask("POST", "/apps", small, "Idempotency-Key", "k1")
	expect(t, again, 201)
	if again.Header().Get("Idempotency-Replayed") != "true" || first.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("replayed: %q, then %q", first.Header().Get("Idempotency-Replayed"), again.Header().Get("Idempotency-Replayed"))
	}
	for _, name := range []string{"Etag", "Location", "Content-Type"} {
		if first.Header().Get(name) == "" || first.Header().Get(name) != again.Header().Get(name) {
			t.Errorf("%s is %q, then %q", name, first.Header().Get(name), again.Header().Get(name))
		}
	}
	if first.Body.String() != again.Body.String() || len(w.signed) != 1 {
		t.Errorf("%s, then %s, with %d changes", first.Body, again.Body, len(w.signed))
	}
	expectCode(t, w.ask("POST", "/apps", strings.Replace(small, "c", "x", 1), "Idempotency-Key", "k1"), 422, "key_reused")
	expectCode(t, w.ask("POST", "/apps?dry_run=true", small, "Idempotency-Key", "k1"), 422, "key_reused")
	expectCode(t, w.ask("POST", "/models/m/rollback", "", "Idempotency-Key", "k1"), 422, "key_reused")
	// Another caller's key of the same name is another one.
	expectCode(t, w.askBy("deployer", "POST", "/apps", small, "Idempotency-Key", "k1"), 409, "exists")
	expectCode(t, w.askBy("viewer", "POST", "/apps", small, "Idempotency-Key", "k1"), 403, "forbidden")
	for _, key := range []string{"", strings.Repeat("x", 256)} {
		expectCode(t, w.ask("POST", "/apps", small, "Idempotency-Key", key), 400, "invalid", "Idempotency-Key")
	}
}

// A refusal is an answer, too; an answer to try again is none.
func TestWhatIsKept(t *testing.T) {
	w := having(t)
	expectCode(t, w.ask("POST", "/models/n/rollback", "", "Idempotency-Key", "k"), 409, "no_previous")
	again := w.ask("POST", "/models/n/rollback", "", "Idempotency-Key", "k")
	expectCode(t, again, 409, "no_previous")
	if again.Header().Get("Idempotency-Replayed") != "true" {
		t.Error("a refusal is not kept")
	}
	w.away = errors.New("no route to the store")
	answer := w.ask("POST", "/apps", small, "Idempotency-Key", "k2")
	expectCode(t, answer, 503, "unavailable", "no route to the store")
	if answer.Header().Get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	w.away = nil
	expect(t, w.ask("POST", "/apps", small, "Idempotency-Key", "k2"), 201)
	w.full = true
	expectCode(t, w.ask("POST", "/apps", small, "Idempotency-Key", "k3"), 503, "unavailable")
}

// beingDone is a world in which a request is being done, which the function that comes back ends.
func beingDone(t *testing.T) (w *world, calls *int, finish func()) {
	w, calls = having(t), new(int)
	begun, end := make(chan struct{}), make(chan struct{})
	w.handler = w.api.one(route{"POST /apps", public, func(w http.ResponseWriter, _ *http.Request) error {
		*calls++
		close(begun)
		<-end
		w.WriteHeader(http.StatusCreated)
		return nil
	}, true, ""})
	done := make(chan struct{})
	go func() { defer close(done); w.ask("POST", "/apps", small, "Idempotency-Key", "k") }()
	<-begun
	return w, calls, func() { close(end); <-done }
}

// A request that is sent again while it is being done waits for its answer.
func TestAgainWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, calls, finish := beingDone(t)
		begun := time.Now()
		time.AfterFunc(3*time.Second, finish)
		answer := w.ask("POST", "/apps", small, "Idempotency-Key", "k")
		if took := time.Since(begun); answer.Code != 201 || answer.Header().Get("Idempotency-Replayed") != "true" || *calls != 1 || took > 3*time.Second+claimEvery {
			t.Errorf("got %d %s after %d calls and %v", answer.Code, answer.Body, *calls, took)
		}
	})
}

// One that takes longer is said to be still being done; another request with its key is at once.
func TestAgainWhileRunningForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, calls, finish := beingDone(t)
		begun := time.Now()
		expectCode(t, w.ask("POST", "/apps", strings.Replace(small, "c", "x", 1), "Idempotency-Key", "k"), 422, "key_reused")
		if took := time.Since(begun); took != 0 {
			t.Errorf("another request waited %v", took)
		}
		answer := w.ask("POST", "/apps", small, "Idempotency-Key", "k")
		expectCode(t, answer, 409, "in_progress")
		if took := time.Since(begun); took != claimWait || answer.Header().Get("Retry-After") != "1" || *calls != 1 {
			t.Errorf("after %v and %d calls: %v", took, *calls, answer.Header())
		}
		finish()
	})
}

// The claim of a process that is gone ends by itself: the request sent again is done then.
func TestAgainAfterADeadClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, finish := beingDone(t)
		time.AfterFunc(serving.ReplyClaimed, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			clear(w.replies)
		})
		w.handler = w.api.one(route{"POST /apps", public, func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusAccepted)
			return nil
		}, true, ""})
		begun := time.Now()
		answer := w.ask("POST", "/apps", small, "Idempotency-Key", "k")
		if took := time.Since(begun); answer.Code != http.StatusAccepted || answer.Header().Get("Idempotency-Replayed") != "" || took > serving.ReplyClaimed+claimEvery {
			t.Errorf("got %d %s after %v", answer.Code, answer.Body, took)
		}
		finish()
	})
}

// A request that panics frees its key.
func TestAgainAfterAPanic(t *testing.T) {
	w := having(t)
	w.handler = w.api.one(route{"POST /apps", public, func(http.ResponseWriter, *http.Request) error { panic("oh") }, true, ""})
	func() {
		defer func() { _ = recover() }()
		w.ask("POST", "/apps", small, "Idempotency-Key", "k")
	}()
	if len(w.replies) > 0 {
		t.Errorf("claimed: %v", w.replies)
	}
}

// A change whose process was killed, or whose store did not answer, before the request had its
// answer was made once: the request sent again gets that answer.
func TestAgainAfterAnAnswerIsLost(t *testing.T) {
	version := `{"version":"9","input_type":"doubles","replicas":1,"command":["python","m.py"]}`
	for path, body := range map[string]string{"/apps": small, "/models/new/versions": version, "/models/m/rollback": "", "/catalog": `{"apps":[` + small + `]}`} {
		w := having(t)
		w.late = errors.New("the store does not answer")
		expectCode(t, w.ask("POST", path, body, "Idempotency-Key", "k"), 503, "unavailable", "the store does not answer")
		if len(w.signed) != 1 {
			t.Fatalf("%s: %d changes", path, len(w.signed))
		}
		w.late = nil
		again := w.ask("POST", path, body, "Idempotency-Key", "k")
		if again.Code >= 300 || again.Header().Get("Idempotency-Replayed") != "true" || len(w.signed) != 1 {
			t.Errorf("%s: got %d %s after %d changes", path, again.Code, again.Body, len(w.signed))
		}
	}
}

// A request whose claim ended while it was done, and that is done elsewhere meanwhile, makes no
// change, and has the other's answer.
func TestDoneTwice(t *testing.T) {
	w := having(t)
	w.meanwhile = func() { // its claim is the only one
		for name, claim := range w.replies {
			w.replies[name] = serving.Reply{Fingerprint: claim.Fingerprint, Status: 201, Body: []byte("{}")}
		}
	}
	answer := w.ask("POST", "/apps", small, "Idempotency-Key", "k")
	expect(t, answer, 201)
	if answer.Header().Get("Idempotency-Replayed") != "true" || len(w.signed) != 0 {
		t.Errorf("%d changes, and the answer %s", len(w.signed), answer.Body)
	}
}
