package queue

import (
	"math"
	"time"

	"github.com/topsail-serving/topsail/internal/fair"
	"github.com/topsail-serving/topsail/serving"
)

// Batch is what Form took out of the queue. The caller owns all of it.
type Batch struct {
	Items   []*Item // to run now; those of each app in order of deadline
	Expired []*Item // their deadline has passed
	Late    []*Item // they could not finish by their deadline
	With    float64 // usual inputs that Items and the next one, or a usual one where none waits, are as much as
}

// Capacity is what the container can do. Its sizes are in usual inputs of the line; one item goes in any case.
type Capacity struct {
	Line   Line          // what a batch takes
	Size   int           // the most that goes in a batch
	Most   int           // the most items in it, whatever their sizes
	Shared int           // like Size, while several apps share it
	First  int           // the same for the highest priority alone, while twice as many of it wait
	Others time.Duration // what it does for other models before the next batch from this queue
}

// slack is what sums of amounts may be off by rounding.
const slack = 1e-9

// Form takes the next batch into b, whose slices it reuses: the items that are due by the priorities and the shares of
// the apps, as many as take no longer than the earliest deadline in the batch allows; but for those of a lower priority
// it does not shrink. An item that has less left than it takes by
// itself is dropped now instead of being started in vain. An item is dropped, too, when the batch would shrink so
// much for it that more of those behind it came late.
func (q *Queue) Form(b *Batch, now time.Time, c Capacity) {
	b.Items, b.Expired, b.Late = b.Items[:0], b.Expired[:0], b.Late[:0]
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.went != nil {
		defer q.went()
	}
	q.credit = max(min(c.Size, c.Most), leastCredit)
	if len(q.lanes) > 1 {
		q.prune(now)
	}
	for _, l := range q.lanes {
		b.dropHopeless(l, now, &c.Line)
	}
	size := float64(c.Size)
	if len(q.lanes) > 1 { // more than this gains little, and a backlog says that it is not little
		waits := q.lanes[0].len()
		size = min(size, float64(max(c.Shared, min(c.First, waits/2), waits/4)))
	}
	dealt := b.deal(q, size, c)
	if b.dropDoomed(q.lanes, now, dealt, &c) {
		dealt = b.deal(q, size, c)
	}
	if fits := q.fitting(dealt, now, &c.Line); fits < dealt {
		b.deal(q, fits, c)
	}
	q.take(b)
	q.length.Add(-int64(len(b.Items) + len(b.Expired) + len(b.Late)))
	q.forgive()
}

// forgive does not hold what apps got against them, where all of a priority got what they asked for.
func (q *Queue) forgive() {
	waits := [serving.Priorities]bool{}
	for _, l := range q.lanes {
		waits[l.priority] = waits[l.priority] || l.len() > 0
	}
	for _, l := range q.lanes {
		if !waits[l.priority] {
			q.clocks[l.priority] = fair.Clock{}
			q.clocks[l.priority].Join(&l.Share)
		}
	}
}

// dropHopeless drops the first items of a lane that cannot make their deadline alone.
func (b *Batch) dropHopeless(l *lane, now time.Time, line *Line) {
	for l.len() > 0 {
		first := l.waiting()[0]
		left := first.Left(now)
		switch {
		case left <= 0:
			b.Expired = append(b.Expired, l.pop())
		case line.Took(line.Amount(first.Load())) > left:
			b.Late = append(b.Late, l.pop())
		default:
			return
		}
	}
}

// deal says how many items of each lane go into a batch of at most size, and how much that is. It is larger than what
// apps share only for one app alone of the highest priority.
func (b *Batch) deal(q *Queue, size float64, c Capacity) (dealt float64) {
	for _, l := range q.lanes {
		l.dealt, l.amount, l.deal = 0, 0, l.Share
	}
	if len(q.lanes) == 0 {
		return 0
	}
	clocks, alone := q.clocks, len(q.lanes) == 1 || q.lanes[0].priority < q.lanes[1].priority
	most, highest, had := float64(c.Shared), serving.LowestPriority, time.Duration(0)
	for n := range c.Most {
		l := q.due()
		if l == nil {
			b.With = dealt + 1
			return dealt
		}
		if l.priority > highest {
			most, highest = c.beside(dealt, had), serving.LowestPriority
		}
		if n == 0 {
			had = l.waiting()[0].Budget()
		}
		amount := c.Line.Amount(l.waiting()[l.dealt].Load())
		if b.With = dealt + amount - slack; n > 0 && (b.With > size || b.With > most && !(alone && l == q.lanes[0])) {
			return dealt
		}
		highest = min(highest, l.priority)
		clocks[l.priority].Take(&l.deal)
		l.dealt++
		l.amount += amount
		dealt += amount
	}
	b.With = math.Inf(1)
	return dealt
}

// How much longer a batch may take for items of lower priorities in it: a fifth, or what is next to nothing of the time
// that its first item had.
const (
	longer     = 1.2
	negligible = 1. / 32
)

// beside is how large a batch may become by items of lower priorities, whose first item had so much time.
func (c *Capacity) beside(dealt float64, had time.Duration) float64 {
	takes := float64(c.Line.Within(dealt))
	return max(dealt, min(float64(c.Shared), c.Line.room(time.Duration(max(longer*takes, takes+negligible*float64(min(had, time.Minute)))))))
}

// due is the lane whose next item goes behind those that are dealt; nil: nothing else waits.
func (q *Queue) due() (first *lane) {
	for _, l := range q.lanes {
		if l.dealt < l.len() && (first == nil || l.due(first) < 0) {
			first = l
		}
	}
	return first
}

// dropDoomed drops what a batch, which is dealt, had better go without.
func (b *Batch) dropDoomed(lanes []*lane, now time.Time, dealt float64, c *Capacity) (some bool) {
	for _, l := range lanes {
		beside, mean := dealt-l.amount, l.amount/float64(max(l.dealt, 1))
		for range doomed(l.waiting(), now, l.dealt, c.Others, func(n int) time.Duration { return c.Line.Within(beside + mean*float64(n)) }) {
			b.Late = append(b.Late, l.pop())
			some = true
		}
		b.dropHopeless(l, now, &c.Line) // what is the first now may be larger
	}
	return some
}

// fitting is how much of what is dealt runs no longer than the first deadlines allow; what is of a higher priority does
// whatever lower ones allow.
func (q *Queue) fitting(most float64, now time.Time, line *Line) float64 {
	above, dealt := 0.0, 0.0 // of higher priorities, and with the present one
	for i, l := range q.lanes {
		if i > 0 && l.priority > q.lanes[i-1].priority {
			above = min(dealt, most)
		}
		if dealt += l.amount; l.dealt > 0 {
			most = max(above, min(most, line.room(l.waiting()[0].Left(now))))
		}
	}
	return most
}

// take moves the items that are dealt into a batch, and charges the apps for them.
func (q *Queue) take(b *Batch) {
	n := 0
	for _, l := range q.lanes {
		n += l.dealt
	}
	if n == 0 {
		return
	}
	kept := math.Pow(shareDecay, float64(n))
	for _, l := range q.lanes {
		if l.len() == 0 {
			continue
		}
		for range l.dealt {
			q.clocks[l.priority].Take(&l.Share)
			b.Items = append(b.Items, l.pop())
		}
		l.lately = l.lately*kept + (1-kept)*float64(l.dealt)/float64(n)
		l.owed = min(max(l.owed+l.minShare*float64(n)-float64(l.dealt), 0), float64(q.credit))
		if l.len() == 0 {
			l.owed = 0
		}
	}
}

// doomed says how many of an app's first items to drop, size of which could go into the next batch, where so many
// take so long. Each of them could make its deadline alone. When the first does not bear a full
// batch, the batch shrinks for it, unless that would make items behind it late:
// under overload each small batch leaves the next ones with as little time, and
// the queue would be cleared in small, dear batches for good. Then as many are
// dropped as it takes for a full batch (Nexus' early drop), if that is fewer than
// the slower clearing of what waits would cost.
func doomed(items []*Item, now time.Time, size int, others time.Duration, took func(n int) time.Duration) (drop int) {
	full := min(size, len(items))
	if full == 0 || took(full) <= items[0].Left(now) {
		return 0
	}
	n := full
	for n > 1 && took(n) > items[0].Left(now) {
		n--
	}
	if inTime(items[n:], now.Add(took(n)+others), size, took(full), others) {
		return 0
	}
	slower := float64(n) / float64(full) * float64(took(full)+others) / float64(took(n)+others)
	lost := len(items) - int(float64(len(items))*slower)
	for drop = 1; drop < lost; drop++ {
		full = min(size, len(items)-drop)
		if took(full) <= items[drop].Left(now) {
			return drop
		}
	}
	return 0
}

// inTime says whether all items would make their deadlines if they ran from start
// on in batches of size, each of which takes as long, with others between them.
func inTime(items []*Item, start time.Time, size int, each, others time.Duration) bool {
	rounds := (len(items) + size - 1) / size
	for done := range rounds {
		left := items[done*size].Left(start)
		if left < time.Duration(done+1)*each+time.Duration(done)*others {
			return false
		}
		if left >= time.Duration(rounds)*each+time.Duration(rounds-1)*others {
			return true // and so have all behind it
		}
	}
	return true
}
