package auth

import (
	"net/netip"
	"sync"
	"time"
)

const (
	attemptsAtOnce = 10
	attemptEvery   = 6 * time.Second
	maxClients     = 10_000 // that are remembered
)

// attempts bounds how often each client may try a key.
type attempts struct {
	mu   sync.Mutex
	used map[string]used // by client
}

// used is how many attempts a client had used up at a moment. They come back with time.
type used struct {
	n  float64
	at time.Time
}

func newAttempts() *attempts { return &attempts{used: map[string]used{}} }

// take uses one attempt of a client, or says how long it is to the next one.
func (a *attempts) take(client string, now time.Time) (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	client = network(client)
	u := a.used[client].by(now)
	if u.n > attemptsAtOnce-1 {
		return time.Duration((u.n - (attemptsAtOnce - 1)) * float64(attemptEvery))
	}
	a.makeRoom(client, now)
	u.n++
	a.used[client] = u
	return 0
}

// giveBack takes an attempt back that was none.
func (a *attempts) giveBack(client string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	client = network(client)
	if u, ok := a.used[client]; ok {
		u.n = max(0, u.n-1)
		a.used[client] = u
	}
}

// makeRoom forgets a client: of a few, one that has all attempts again, or else any.
func (a *attempts) makeRoom(client string, now time.Time) {
	if _, known := a.used[client]; known || len(a.used) < maxClients {
		return
	}
	forget, looked := "", 0
	for other, u := range a.used { // it begins anywhere
		forget = other
		if looked++; u.by(now).n == 0 || looked == 8 {
			break
		}
	}
	delete(a.used, forget)
}

// by is what is used up at a later moment.
func (u used) by(now time.Time) used {
	back := float64(now.Sub(u.at)) / float64(attemptEvery)
	return used{max(0, u.n-max(0, back)), now}
}

// network is what an address belongs to: a client that has one of IPv6 has many.
func network(client string) string {
	ip, err := netip.ParseAddr(client)
	if err != nil || ip.Unmap().Is4() {
		return client
	}
	prefix, _ := ip.Prefix(64) // an address of IPv6 has 128 bits
	return prefix.String()
}
