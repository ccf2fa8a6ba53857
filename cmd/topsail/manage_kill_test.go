package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/wait"
)

// TestAcknowledgedChangesOutliveAKill changes this and that from several clients until
// the process is killed: what was acknowledged is there afterwards, with its entry in the
// audit log, and a key that was revoked stays so. What was not, and is sent again, is
// answered as if nothing had happened, and made once.
func TestAcknowledgedChangesOutliveAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := start(t, dir, "")
	o := operate(t, in)
	status, text := o.send(http.MethodPost, "/keys", `{"name": "ann", "role": "viewer"}`)
	if status != http.StatusCreated {
		t.Fatalf("status %d: %s", status, text)
	}
	o.do("key", "revoke", "ann", "--yes")

	var mu sync.Mutex
	var acknowledged, unanswered []string
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged) > 100
	}
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("app-%d-%d", client, i)
				status, err := create(o, name)
				if err != nil { // it is killed
					mu.Lock()
					unanswered = append(unanswered, name)
					mu.Unlock()
					return
				}
				if status != http.StatusCreated {
					t.Errorf("%s: status %d", name, status)
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, name)
				mu.Unlock()
			}
		})
	}
	wait.Until(t, "changes", enough)
	in.stop(syscall.SIGKILL)
	clients.Wait()

	o = operate(t, start(t, dir, ""))
	if len(unanswered) != 4 {
		t.Errorf("%d requests had no answer", len(unanswered))
	}
	made := 0
	for _, name := range append(unanswered, acknowledged[len(acknowledged)-10:]...) {
		status, err := create(o, name)
		if err != nil || status != http.StatusCreated && status != http.StatusOK {
			t.Errorf("%s, sent again: status %d, error %v", name, status, err)
		}
		if status == http.StatusOK {
			made++
		}
	}
	if made < 10 {
		t.Errorf("%d of 10 apps were there", made)
	}
	apps, entries := map[string]bool{}, map[string]bool{}
	for _, a := range list[serving.App](o, "/apps?limit=5000") {
		apps[a.Name] = true
	}
	for _, e := range list[serving.AuditEntry](o, "/audit?kind=app&limit=5000") {
		if e.Action != "create" || entries[e.Name] {
			t.Errorf("nobody has done this: %+v", e)
		}
		entries[e.Name] = true
	}
	for _, name := range acknowledged {
		if !apps[name] || !entries[name] {
			t.Errorf("%s was acknowledged; that it is there is %t, and in the audit log %t", name, apps[name], entries[name])
		}
	}
	if len(apps) != len(entries) {
		t.Errorf("there are %d apps, and %d entries say that one was made", len(apps), len(entries))
	}
	if keys := list[serving.Key](o, "/keys"); len(keys) != 0 {
		t.Errorf("there are the keys %+v", keys)
	}
	t.Logf("%d changes were acknowledged, %d are there, and of 4 without an answer %d were made", len(acknowledged), len(apps), made-10)
}

// create creates an app; that it is there and equal is 200.
func create(o *operator, name string) (status int, err error) {
	body := fmt.Sprintf(`{"name": %q, "input_type": "doubles", "latency_slo_micros": 100000}`, name)
	request, err := http.NewRequest(http.MethodPost, o.setting("TOPSAIL_ADMIN_URL")+"/api/v1/apps", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}
