package traffic

import (
	"math"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// The numbers of an app in a step.
const (
	secondsKnown = iota // how many seconds of the step are known
	asked               // questions to models
	hits                // of these, what the cache answered
	median
	tail // both of the step's times to the answer, in seconds
	answered
	high       = answered + causes // answered and what follows are answers by cause; of the times, 95 % are below
	appColumns = high + 1
)

// minute is the window of what is now, in seconds.
const minute = 60

// app is what clients asked of one app, and got, at all gateways.
type app struct {
	objective time.Duration
	seen      time.Time // when a gateway last had it
	series    series
	recent    [minute]times                            // by second modulo their number
	steps     [3]times                                 // of the newest step of each ring
	models    map[serving.ModelID]*[minute + 1]askedIn // by second modulo their number
}

// askedIn is what came of asking a model in a second.
type askedIn struct {
	second int64
	asking
}

// times are the times to the answer within a step.
type times struct {
	step int64
	histogram
}

// add adds to the step, or begins it.
func (t *times) add(step int64, h histogram) {
	if t.step != step {
		*t = times{step: step}
	}
	t.histogram = t.plus(h)
}

func newApp() *app {
	return &app{series: newSeries(appColumns), models: map[serving.ModelID]*[minute + 1]askedIn{}}
}

// take adds what a gateway counted in the seconds after from, up to to.
func (a *app) take(d *tally, from, to int64) {
	for second := from + 1; second <= to; second++ {
		a.touch(second)
		share := 1 / float64(to-from)
		a.put(asked, second, d.asked*share)
		a.put(hits, second, d.hits*share)
		for cause, n := range d.answers {
			a.put(answered+cause, second, n*share)
		}
		for id, n := range d.models {
			a.ask(id, second, n, share)
		}
	}
	if d.took.total() > 0 {
		a.time(d.took, to)
	}
}

// rest is take where a gateway counted nothing.
func (a *app) rest(from, to int64) {
	for second := from + 1; second <= to; second++ {
		a.touch(second)
	}
}

// touch notes that a gateway has reported a second.
func (a *app) touch(second int64) {
	if c := a.series[0].cell(secondsKnown, second); c == nil || *c == *c {
		return // over the edge, or another gateway has
	}
	for i := range a.series {
		a.series[i].add(secondsKnown, second, 1)
	}
}

// put adds what is not zero, which need not be kept.
func (a *app) put(column int, second int64, n float64) {
	if n == 0 {
		return
	}
	for i := range a.series {
		a.series[i].add(column, second, n)
	}
}

// ask adds a share of what came of asking a model.
func (a *app) ask(id serving.ModelID, second int64, n asking, share float64) {
	if n == (asking{}) {
		return
	}
	m := a.models[id]
	if m == nil {
		m = &[minute + 1]askedIn{}
		a.models[id] = m
	}
	in := &m[second%(minute+1)]
	if in.second != second {
		*in = askedIn{second: second}
	}
	for i := range n {
		in.asking[i] += n[i] * share
	}
}

// chosen are the models that were asked in the minute up to a second; it forgets the others.
func (a *app) chosen(until int64) (list []api.ModelTraffic) {
	answers := 0.0
	for second := until - minute + 1; second <= until; second++ {
		for column := answered; column < high; column++ {
			if n := a.series[0].at(column, second); !math.IsNaN(n) {
				answers += n
			}
		}
	}
	for id, m := range a.models {
		var sum asking
		for i := range m {
			if m[i].second > until-minute && m[i].second <= until {
				for j, n := range m[i].asking {
					sum[j] += n
				}
			}
		}
		if sum == (asking{}) {
			delete(a.models, id)
			continue
		}
		list = append(list, api.ModelTraffic{ModelID: id, Chosen: part(sum[0], answers), Answered: part(sum[1], sum[0]), Agreed: part(sum[2], sum[0])})
	}
	return list
}

// part is the share of some in all, which may have been counted a moment apart.
func part(some, all float64) float64 {
	if all == 0 {
		return 0
	}
	return min(1, some/all)
}

// time takes in times to the answer. What comes late counts in the newest step.
func (a *app) time(h histogram, second int64) {
	a.recent[second%minute].add(second, h)
	for i := range a.series {
		r, t := &a.series[i], &a.steps[i]
		step := max(second/r.step, t.step)
		t.add(step, h)
		r.set(median, step*r.step, t.quantile(0.5))
		r.set(high, step*r.step, t.quantile(0.95))
		r.set(tail, step*r.step, t.quantile(0.99))
	}
}

// now is the app in the minute up to a second; false where nothing is known of it.
func (a *app) now(name string, until int64) (api.AppTraffic, bool) {
	var sums [appColumns]float64
	var took histogram
	r := &a.series[0]
	for second := until - minute + 1; second <= until; second++ {
		if math.IsNaN(r.at(secondsKnown, second)) {
			continue
		}
		for column := range sums {
			if x := r.at(column, second); !math.IsNaN(x) {
				sums[column] += x
			}
		}
		if t := &a.recent[second%minute]; t.step == second {
			took = took.plus(t.histogram)
		}
	}
	span := sums[secondsKnown]
	if span == 0 {
		return api.AppTraffic{}, false
	}
	t := api.AppTraffic{
		App: name, SLO: a.objective.Microseconds(),
		P50: micros(took.quantile(0.5)), P95: micros(took.quantile(0.95)), P99: micros(took.quantile(0.99)),
	}
	if all := total(sums[answered:high]); all > 0 {
		t.Rate = all / span
		within := sums[answered+int(serving.OK)] / all
		t.Attainment, t.Defaults = new(within), new(1-within)
	}
	if sums[asked] > 0 {
		t.CacheHits = sums[hits] / sums[asked]
	}
	for _, cause := range serving.Causes()[1:] {
		if n := sums[answered+int(cause)]; n > 0 {
			if t.Causes == nil {
				t.Causes = map[string]float64{}
			}
			t.Causes[cause.String()] = n / span
		}
	}
	return t, true
}

// over is the app in a window up to a second. Of its steps' times to the answer a point
// has the longest: what several have in common cannot be told from theirs.
func (a *app) over(name string, window time.Duration, until int64) api.AppSeries {
	v := a.series.view(window, until)
	s := api.AppSeries{
		App: name, SLO: a.objective.Microseconds(), Step: v.step(), Times: v.times(),
		Rate: make([]*float64, v.n), Attainment: make([]*float64, v.n), CacheHits: make([]*float64, v.n),
		P50: inMicros(v.points(median, most)), P95: inMicros(v.points(high, most)), P99: inMicros(v.points(tail, most)),
		Causes: map[string][]*float64{},
	}
	for i := range v.n {
		span := v.point(secondsKnown, i, sum)
		if !(span > 0) {
			continue
		}
		count := func(column int) float64 {
			if n := v.point(column, i, sum); !math.IsNaN(n) {
				return n
			}
			return 0
		}
		all := 0.0
		for _, cause := range serving.Causes() {
			all += count(answered + int(cause))
		}
		s.Rate[i] = known(all / span)
		s.Attainment[i] = known(count(answered+int(serving.OK)) / all)
		s.CacheHits[i] = known(count(hits) / count(asked))
		for _, cause := range serving.Causes()[1:] {
			a.cause(&s, i, cause, count(answered+int(cause))/span)
		}
	}
	return s
}

// cause puts a point of a cause, once there is one that is not zero.
func (a *app) cause(s *api.AppSeries, i int, cause serving.Cause, rate float64) {
	name := cause.String()
	if s.Causes[name] == nil && rate > 0 {
		s.Causes[name] = make([]*float64, len(s.Times))
		for before := range i {
			if s.Rate[before] != nil {
				s.Causes[name][before] = new(float64)
			}
		}
	}
	if s.Causes[name] != nil {
		s.Causes[name][i] = &rate
	}
}

func total(all []float64) float64 {
	n := 0.0
	for _, x := range all {
		n += x
	}
	return n
}

func micros(seconds float64) int64 {
	if math.IsNaN(seconds) {
		return 0
	}
	return int64(math.Round(seconds * 1e6))
}

func inMicros(seconds []*float64) []*float64 {
	for _, s := range seconds {
		if s != nil {
			*s = math.Round(*s * 1e6)
		}
	}
	return seconds
}
