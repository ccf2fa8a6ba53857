package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/scheduler/window"
	"github.com/topsail-serving/topsail/serving"
)

const (
	// after is when in a second it is decided: then the demand of the last one is in.
	after = 200 * time.Millisecond
	// apart is the least time from one look at the jobs to the next on a hint.
	apart = 100 * time.Millisecond
	// atOnce is how many changes are under way at a time.
	atOnce = 8
)

// loop is one term. Its fields belong to the goroutine of run.
type loop struct {
	*Scheduler
	term    Term
	journal *journal
	// abdicate ends the term if another process leads now.
	abdicate context.CancelCauseFunc
	mail     *mailbox

	windows *window.Windows
	unknown time.Time // since when the demand is not known; zero: it is
	catalog *serving.Catalog
	entries map[serving.ModelID]*entry
	active  map[serving.ModelID]*entry // those that a tick looks at
	rising  map[string]serving.ModelID // by model: current, and not serving yet
	noting  map[serving.ModelID]bool   // of those, the ones of which it is being noted that they serve
	jobs    []serving.Job              // as they were read last
	read    time.Time                  // when that was; zero: never
	seen    int                        // the sequence of that reading
	ready   map[serving.Definition]int
	guard   guard
	updates updates

	sequence int // of the reading that was started last
	reading  bool
	due      bool // the demand is to be looked at next
	readings chan reading
	failing  map[string]bool // what could not be done the last time
	hint     *time.Timer
	hinted   bool // hint is set

	workers  sync.WaitGroup
	slots    chan struct{}
	outcomes chan outcome
	served   chan served
}

func newLoop(s *Scheduler, term Term, j *journal, now time.Time) *loop {
	hint := time.NewTimer(0)
	hint.Stop()
	return &loop{
		Scheduler: s, term: term, journal: j, mail: newMailbox(),
		windows:  window.New(),
		unknown:  now,
		entries:  map[serving.ModelID]*entry{},
		active:   map[serving.ModelID]*entry{},
		rising:   map[string]serving.ModelID{},
		noting:   map[serving.ModelID]bool{},
		readings: make(chan reading, 1),
		failing:  map[string]bool{},
		hint:     hint,
		slots:    make(chan struct{}, atOnce),
		outcomes: make(chan outcome),
		served:   make(chan served),
	}
}

// run decides until ctx ends, and then waits for what it has started.
func (l *loop) run(ctx context.Context) {
	defer l.finish()
	l.startReading(ctx, false) // what the last two minutes were like may take longer to read
	tick := time.NewTimer(untilTick(time.Now()))
	defer tick.Stop()
	defer l.hint.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.startReading(ctx, true)
			tick.Reset(untilTick(time.Now()))
		case <-l.hint.C:
			l.hinted = false
			l.takeHint(ctx)
		case r := <-l.readings:
			l.takeReading(ctx, r, time.Now())
		case <-l.mail.bell:
			l.takeMail(ctx, l.mail.take(), time.Now())
		case o := <-l.outcomes:
			l.takeOutcome(o, time.Now())
		case s := <-l.served:
			l.takeServed(ctx, s, time.Now())
		}
	}
}

// finish waits for what was started, and takes in how it went.
func (l *loop) finish() {
	done := make(chan struct{})
	go func() {
		l.workers.Wait()
		close(done)
	}()
	for {
		select {
		case o := <-l.outcomes:
			l.takeOutcome(o, time.Now())
		case <-l.served:
		case <-done:
			return
		}
	}
}

// untilTick is how long it is to the next time to decide.
func untilTick(now time.Time) time.Duration {
	wait := now.Truncate(time.Second).Add(after).Sub(now)
	if wait <= 0 {
		wait += time.Second
	}
	return wait
}

// takeMail takes in what watchers saw, and decides about what it changes.
func (l *loop) takeMail(ctx context.Context, m mail, now time.Time) {
	if m.replicas != nil {
		l.takeReplicas(m.replicas)
	}
	if m.catalog != nil {
		l.takeCatalog(m.catalog, now)
	}
	for id := range m.wakes {
		if e := l.entries[id]; e != nil && e.version != nil {
			e.woken = now
			l.active[id] = e
			l.decide(ctx, e, now)
		}
	}
	if m.hint {
		l.lookSoon()
	}
	if m.catalog != nil {
		l.decideAll(ctx, now)
	}
	l.serve(ctx)
}
