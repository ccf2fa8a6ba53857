package auth

import (
	"fmt"
	"testing"
	"time"
)

// However many clients come, few are remembered, and those who come now are among them.
func TestClientsAreBounded(t *testing.T) {
	a, now := newAttempts(), time.Unix(1e9, 0)
	for i := range 3 * maxClients {
		client := fmt.Sprintf("192.0.%d.%d", i/256, i%256)
		if a.take(client, now) != 0 {
			t.Fatalf("client %d waits", i)
		}
		if len(a.used) > maxClients || a.used[client].n == 0 {
			t.Fatalf("after %d clients %d are remembered", i, len(a.used))
		}
	}
	a = newAttempts()
	a.take("192.0.2.1", now)
	a.giveBack("192.0.2.99")
	if a.giveBack("192.0.2.1"); a.used["192.0.2.1"].n != 0 || len(a.used) != 1 {
		t.Errorf("after giving back: %v", a.used)
	}
	if back := a.take("192.0.2.1", now.Add(-time.Hour)); back != 0 { // the clock was set back
		t.Errorf("waits %v", back)
	}
}
