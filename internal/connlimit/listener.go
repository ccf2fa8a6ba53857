// Package connlimit bounds the connections that are open on a listener. For a new one that is
// beyond the limit, those are closed that have waited longest for a request: clients that say
// nothing, however many, keep no other client out. When none waits there are some places more, whose
// requests a server refuses, or answers with its health.
package connlimit

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Config says how many connections may be open. All but PerAddress is required.
type Config struct {
	Most       int          // connections
	Spare      int          // more of them, when all are being answered
	PerAddress int          // of them from one address; 0: any number
	Closed     func(Reason) // is called for each that is closed for another, or refused; counts it
	Log        *slog.Logger
}

// Reason is why a connection was closed that there was no room for.
type Reason string

const (
	Idle    Reason = "idle"    // it waited longest when another one came
	Full    Reason = "full"    // it came when all others were being answered
	Address Reason = "address" // it came from an address that has enough
)

// Reasons returns all of them.
func Reasons() []Reason { return []Reason{Idle, Full, Address} }

// Listener accepts the connections that there is room for. C is what a server has of each; it
// tells the Listener by Release when one is closed, and the Place of each whether it waits.
type Listener[C conn] struct {
	net.Listener
	config Config
	wrap   func(net.Conn, *Place) C

	mu      sync.Mutex // guards the following
	open    map[C]*Place
	closing int                // of them: how many have been closed for others
	from    map[netip.Addr]int // how many are open from an address; kept with PerAddress alone
	warned  time.Time
	left    sync.WaitGroup // counts open
}

type conn interface {
	net.Conn
	comparable
}

// Place says whether a connection waits for a request. Its methods may be called at any time.
type Place struct {
	Spare  bool         // it came when all others were being answered
	waits  atomic.Int64 // since when, in Unix nanoseconds; 0: it does not, or is closed for another
	from   netip.Addr
	closed bool // for another; guarded by the Listener's mu
}

// Wait says that the connection waits for a request from now on.
func (p *Place) Wait() { p.waits.Store(time.Now().UnixNano()) }

// Busy says that a request is being answered.
func (p *Place) Busy() { p.waits.Store(0) }

// Waits is whether the connection waits for a request.
func (p *Place) Waits() bool { return p.waits.Load() > 0 }

// New returns a Listener on ln, which it closes. wrap makes of a connection what Accept returns.
func New[C conn](ln net.Listener, config Config, wrap func(net.Conn, *Place) C) *Listener[C] {
	return &Listener[C]{Listener: ln, config: config, wrap: wrap, open: make(map[C]*Place), from: make(map[netip.Addr]int)}
}

// Accept returns the next connection that there is room for, a C. When the process runs out of
// files it waits for some to be closed.
func (l *Listener[C]) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		switch {
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED):
			l.mu.Lock()
			l.warn("cannot accept connections", "error", err)
			l.mu.Unlock()
			time.Sleep(20 * time.Millisecond)
		case err != nil:
			return nil, err
		default:
			if c, ok := l.take(raw); ok {
				return c, nil
			}
			Cut(raw)
		}
	}
}

// take gives a connection its place, or says that there is none.
func (l *Listener[C]) take(raw net.Conn) (c C, ok bool) {
	place := &Place{from: addressOf(raw)}
	place.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.config.PerAddress > 0 && l.from[place.from] >= l.config.PerAddress {
		l.config.Closed(Address)
		l.warn("refusing connections from an address", "address", place.from, "max_connections_per_address", l.config.PerAddress)
		return c, false
	}
	if l.taken() >= l.config.Most {
		l.warn("the connection limit is reached, and connections that wait for a request are closed: raise max_connections if this is not an attack", "max_connections", l.config.Most)
		l.closeWaiting()
		place.Spare = l.taken() >= l.config.Most
	}
	if l.taken() >= l.config.Most+l.config.Spare {
		l.config.Closed(Full)
		return c, false
	}
	c = l.wrap(raw, place)
	l.open[c] = place
	if l.config.PerAddress > 0 {
		l.from[place.from]++
	}
	l.left.Add(1)
	return c, true
}

// taken is how many places are taken. l.mu is held.
func (l *Listener[C]) taken() int { return len(l.open) - l.closing }

// atOnce is the share of the limit of which the waiting connections are closed in one go, since
// to look for them takes time.
const atOnce = 64

// closeWaiting makes room for one connection, and somewhat more, by closing those that have
// waited longest for a request. l.mu is held.
func (l *Listener[C]) closeWaiting() {
	type waiting struct {
		conn  C
		place *Place
		since int64
	}
	var all []waiting
	for c, p := range l.open {
		if since := p.waits.Load(); since > 0 && !p.closed {
			all = append(all, waiting{c, p, since})
		}
	}
	slices.SortFunc(all, func(a, b waiting) int { return cmp.Compare(a.since, b.since) })
	for _, w := range all[:min(len(all), max(1+l.config.Most/atOnce, l.taken()+1-l.config.Most))] {
		if w.place.waits.CompareAndSwap(w.since, 0) { // else a request has arrived
			w.place.closed = true
			l.closing++
			Cut(w.conn)
			l.config.Closed(Idle)
		}
	}
}

// addressOf is where a connection comes from: of IPv6 the network, which is one client's.
func addressOf(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	if addr.Is6() {
		network, _ := addr.WithZone("").Prefix(64) // 64 bits are not too many
		return network.Addr()
	}
	return addr
}

// warn logs at most once a minute, since clients decide how often it is called. l.mu is held.
func (l *Listener[C]) warn(message string, attrs ...any) {
	if now := time.Now(); now.Sub(l.warned) > time.Minute {
		l.warned = now
		l.config.Log.Warn(message, attrs...)
	}
}

// Place returns that of a connection which Accept returned, or nil when it has been released.
func (l *Listener[C]) Place(c C) *Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[c]
}

// Release gives a connection's place back. Nothing happens when it has none.
func (l *Listener[C]) Release(c C) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.open[c]
	if !ok {
		return
	}
	delete(l.open, c)
	if p.closed {
		l.closing--
	}
	if l.config.PerAddress > 0 {
		if l.from[p.from]--; l.from[p.from] == 0 {
			delete(l.from, p.from)
		}
	}
	l.left.Done()
}

// CutAll cuts the connections of which it holds.
func (l *Listener[C]) CutAll(which func(C) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if which(c) {
			Cut(c)
		}
	}
}

// WaitReleased returns when every connection has been released. No more may come.
func (l *Listener[C]) WaitReleased() { l.left.Wait() }

// Cut ends a connection, and what it wraps, without a farewell. TLS would want to send one, and
// wait seconds for a client that does not read.
func Cut(c net.Conn) {
	for {
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			c.Close()
			return
		}
		c = outer.NetConn()
	}
}
