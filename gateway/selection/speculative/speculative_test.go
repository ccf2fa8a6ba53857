package speculative

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

const budget = 100 * time.Millisecond

// candidates are sorted versions like "a:1", ready unless they end in "!".
func candidates(names ...string) []selection.Candidate {
	list := make([]selection.Candidate, len(names))
	for i, name := range names {
		name, asleep := strings.CutSuffix(name, "!")
		list[i] = selection.Candidate{Ready: !asleep, Cost: 1}
		list[i].Model, list[i].Version, _ = strings.Cut(name, ":")
	}
	return list
}

func names(plan *selection.Plan) (list []string) {
	for _, ask := range plan.Asks {
		list = append(list, ask.ID.String())
	}
	return list
}

// answer is what a model says: "" nothing yet, "!" a failure, "0.7" an output that is so
// sure, "?" one that does not say, and "q0.7" one that says it in a qualifier.
func answer(t *testing.T, text string) selection.Answer {
	number := func(text string) float64 {
		x, ok := selection.Number(&serving.Output{JSON: []byte(text)})
		if !ok {
			t.Fatalf("%q is no answer", text)
		}
		return x
	}
	switch {
	case text == "":
		return selection.Answer{}
	case text == "!":
		return selection.Answer{Failure: &serving.Failure{Cause: serving.ModelError}}
	case text == "?":
		return selection.Answer{Output: &serving.Output{}}
	case text[0] == 'q':
		q := serving.Number(number(text[1:]))
		q.Name = "quality"
		return selection.Answer{Output: &serving.Output{Qualifiers: []serving.Value{{Name: "other", DType: serving.String}, q}}}
	}
	x := number(text)
	return selection.Answer{Output: &serving.Output{Confidence: &x}}
}

// step is one call of Combine and what is to come of it.
type step struct {
	at      time.Duration // budget: the deadline
	answers string        // separated by spaces; "-" is nothing yet
	winner  string        // the model whose answer is taken; "!": a failure; "late": nothing; "": not decided
	ended   selection.Ending
	open    int
	again   time.Duration
}

// plays runs the steps of one query.
func plays(t *testing.T, p selection.Policy, list []selection.Candidate, steps ...step) {
	t.Helper()
	var plan selection.Plan
	p.Select(nil, &selection.Query{Budget: budget}, list, &plan)
	for i, s := range steps {
		var answers []selection.Answer
		for text := range strings.FieldsSeq(s.answers) {
			answers = append(answers, answer(t, strings.TrimPrefix(text, "-")))
		}
		d := p.Combine(nil, &plan, answers, selection.Moment{Elapsed: s.at, Budget: budget, Final: s.at >= budget})
		if got := outcome(&d); got != s.winner || d.Ended != s.ended || d.Open != s.open || d.Again != s.again {
			t.Errorf("step %d, with %q after %v: got %q, %+v", i, s.answers, s.at, got, d)
		}
	}
}

func outcome(d *selection.Decision) string {
	switch {
	case !d.Done:
		return ""
	case d.Output != nil:
		return d.Model.Model
	case d.Failure != nil:
		return "!"
	}
	return "late"
}

func TestModelsAreAskedInTheirOrder(t *testing.T) {
	links := []string{"c", "a", "b"}
	there := candidates("a:1", "b:1", "c:1", "d:1")
	for name, test := range map[string]struct {
		policy selection.Policy
		there  []selection.Candidate
		want   string
	}{
		"as linked":               {NewFirstAcceptable(serving.PolicySpec{}, links), there, "c:1 a:1 b:1"},
		"as named":                {NewFirstAcceptable(serving.PolicySpec{Models: []string{"b", "a"}}, links), there, "b:1 a:1"},
		"not more than the most":  {NewFirstAcceptable(serving.PolicySpec{Most: 2}, links), there, "c:1 a:1"},
		"those that are ready":    {NewFirstAcceptable(serving.PolicySpec{}, links), candidates("a:1!", "b:1", "c:1!"), "b:1"},
		"all if none is":          {NewFirstAcceptable(serving.PolicySpec{}, links), candidates("a:1!", "b:1!"), "a:1 b:1"},
		"versions":                {NewFirstAcceptable(serving.PolicySpec{Models: []string{"a:2", "b", "a:1"}}, links), candidates("a:1", "a:2", "b:7"), "a:2 b:7 a:1"},
		"one version of a model":  {NewFirstAcceptable(serving.PolicySpec{}, links), candidates("a:1", "a:2", "c:1"), "c:1 a:1"},
		"the fast one, the best":  {NewGuaranteed(serving.PolicySpec{}, links), there, "c:1 b:1 a:1"},
		"the most of those":       {NewGuaranteed(serving.PolicySpec{Most: 2}, links), there, "c:1 b:1"},
		"one by one":              {NewCascade(serving.PolicySpec{}, links), there, "c:1 a:1 b:1"},
		"the first alone":         {NewHedge(serving.PolicySpec{}, links), there, "c:1"},
		"the named alone":         {NewHedge(serving.PolicySpec{Model: "a"}, links), there, "a:1"},
		"the wanted first":        {NewPrefer(serving.PolicySpec{Order: []string{"b", "a:1"}}, links), there, "b:1 a:1"},
		"also if it is not there": {NewPrefer(serving.PolicySpec{}, links), candidates("a:1", "b:1", "c:1!"), "c:1 a:1 b:1"},
		"nobody, if none is left": {NewGuaranteed(serving.PolicySpec{Models: []string{"x"}}, links), there, ""},
	} {
		var plan selection.Plan
		test.policy.Select(nil, &selection.Query{Budget: budget}, test.there, &plan)
		if got := strings.Join(names(&plan), " "); got != test.want {
			t.Errorf("%s: %q are asked, not %q", name, got, test.want)
		}
	}
}

func TestGuaranteed(t *testing.T) {
	three := candidates("best:1", "fast:1", "good:1")
	models := []string{"fast", "good", "best"} // so the answers are of fast, best, good
	p := NewGuaranteed(serving.PolicySpec{Models: models}, nil)
	const within = 30 * time.Millisecond
	limited := NewGuaranteed(serving.PolicySpec{Models: models, WithinMicros: within.Microseconds()}, nil)
	for name, test := range map[string]struct {
		policy *Guaranteed
		steps  []step
	}{
		"the best ends it":            {p, []step{{answers: "? - -"}, {answers: "? ? -", winner: "best", ended: selection.EndedCertain}}},
		"all have come":               {p, []step{{answers: "? ? ?", winner: "best", ended: selection.EndedAll}}},
		"no better one can come":      {p, []step{{answers: "- ! ?", winner: "good", ended: selection.EndedCertain}}},
		"only the fast one is left":   {p, []step{{answers: "? ! -"}, {answers: "? ! !", winner: "fast", ended: selection.EndedAll}}},
		"the deadline":                {p, []step{{at: budget, answers: "? - -", winner: "fast", ended: selection.EndedDeadline}}},
		"the best at the deadline":    {p, []step{{at: budget, answers: "? - ?", winner: "good", ended: selection.EndedDeadline}}},
		"nothing by the deadline":     {p, []step{{at: budget, answers: "! - !", winner: "late", ended: selection.EndedDeadline}}},
		"all fail":                    {p, []step{{answers: "! ! !", winner: "!", ended: selection.EndedAll}}},
		"time":                        {limited, []step{{answers: "? - -", again: within}, {at: within, answers: "? - -", winner: "fast", ended: selection.EndedTime}}},
		"the best in time":            {limited, []step{{answers: "? - -", again: within}, {at: within, answers: "? - ?", winner: "good", ended: selection.EndedTime}}},
		"nothing in time":             {limited, []step{{at: within, answers: "! - -"}, {at: within * 2, answers: "! - ?", winner: "good", ended: selection.EndedTime}}},
		"nothing in time, or at all":  {limited, []step{{at: within, answers: "! - -"}, {at: budget, answers: "! - -", winner: "late", ended: selection.EndedDeadline}}},
		"only the fast, and in time":  {limited, []step{{answers: "?", winner: "fast", ended: selection.EndedAll}}},
		"others left out under load":  {limited, []step{{answers: "? -", again: within}, {answers: "? ?", winner: "best", ended: selection.EndedAll}}},
		"left out, and the best late": {limited, []step{{at: within, answers: "? -", winner: "fast", ended: selection.EndedTime}}},
	} {
		t.Run(name, func(t *testing.T) { plays(t, test.policy, three, test.steps...) })
	}
}

func TestFirstAcceptable(t *testing.T) {
	three := candidates("a:1", "b:1", "c:1")
	links := []string{"a", "b", "c"}
	p := NewFirstAcceptable(serving.PolicySpec{}, links)
	strict := NewFirstAcceptable(serving.PolicySpec{Confidence: 0.95, WithinMicros: 30_000}, links)
	qualified := NewFirstAcceptable(serving.PolicySpec{Qualifier: "quality", Confidence: 5}, links)
	const within = 30 * time.Millisecond
	for name, test := range map[string]struct {
		policy *FirstAcceptable
		steps  []step
	}{
		"one is sure enough":         {p, []step{{answers: "0.7 - -"}, {answers: "0.7 - 0.8", winner: "c", ended: selection.EndedAcceptable}}},
		"two at once":                {p, []step{{answers: "- 0.8 0.9", winner: "b", ended: selection.EndedAcceptable}}},
		"the surest of all":          {p, []step{{answers: "0.1 0.7 0.2", winner: "b", ended: selection.EndedAll}}},
		"the first of equals":        {p, []step{{answers: "! 0.7 0.7", winner: "b", ended: selection.EndedAll}}},
		"the first that says naught": {p, []step{{answers: "? ? ?", winner: "a", ended: selection.EndedAll}}},
		"who says something":         {p, []step{{answers: "? ? 0.1", winner: "c", ended: selection.EndedAll}}},
		"the deadline":               {p, []step{{at: budget, answers: "- ? 0.1", winner: "c", ended: selection.EndedDeadline}}},
		"all fail":                   {p, []step{{answers: "! ! !", winner: "!", ended: selection.EndedAll}}},
		"another bar":                {strict, []step{{answers: "0.9 - -", again: within}, {answers: "0.9 0.95 -", winner: "b", ended: selection.EndedAcceptable}}},
		"time":                       {strict, []step{{at: within, answers: "0.5 0.9 -", winner: "b", ended: selection.EndedTime}}},
		"nothing in time":            {strict, []step{{at: within, answers: "- - -"}, {at: 2 * within, answers: "- - 0.1", winner: "c", ended: selection.EndedTime}}},
		"a qualifier":                {qualified, []step{{answers: "0.99 q4 -"}, {answers: "0.99 q4 q5", winner: "c", ended: selection.EndedAcceptable}}},
		"the best qualifier":         {qualified, []step{{answers: "0.99 q-2 q-1", winner: "c", ended: selection.EndedAll}}},
	} {
		t.Run(name, func(t *testing.T) { plays(t, test.policy, three, test.steps...) })
	}
}

func TestHedgeAsksAgainAfterTheP95(t *testing.T) {
	list := candidates("a:1", "b:1")
	for name, test := range map[string]struct {
		spec serving.PolicySpec
		p95  time.Duration
		want time.Duration
	}{
		"the P95":              {serving.PolicySpec{}, 7 * time.Millisecond, 7 * time.Millisecond},
		"the gateway's choice": {serving.PolicySpec{}, 0, 0},
		"the policy's own":     {serving.PolicySpec{WithinMicros: 3000}, 7 * time.Millisecond, 3 * time.Millisecond},
	} {
		list[1].P95 = test.p95
		var plan selection.Plan
		NewHedge(test.spec, []string{"b", "a"}).Select(nil, &selection.Query{}, list, &plan)
		if len(plan.Asks) != 1 || plan.Asks[0].HedgeAfter != test.want || plan.Asks[0].Candidate != 1 {
			t.Errorf("%s: asks %+v", name, plan.Asks)
		}
	}
	plays(t, NewHedge(serving.PolicySpec{}, []string{"b"}), list,
		step{answers: "-", open: 1}, step{answers: "0.1", winner: "b", ended: selection.EndedAll})
}

func TestCascade(t *testing.T) {
	const half, most = budget / 2, budget * 3 / 4
	three := candidates("a:1", "b:1", "c:1")
	slow := candidates("a:1", "b:1", "c:1")
	slow[1].Median, slow[2].Median = 10*time.Millisecond, 60*time.Millisecond
	heavy := candidates("a:1", "b:1", "c:1")
	heavy[1].Median = 60 * time.Millisecond
	p := NewCascade(serving.PolicySpec{}, []string{"a", "b", "c"})
	for name, test := range map[string]struct {
		there []selection.Candidate
		steps []step
	}{
		"the cheap one is sure":       {three, []step{{answers: "- - -", open: 1, again: half}, {answers: "0.8 - -", winner: "a", ended: selection.EndedAcceptable}}},
		"the next is sure":            {three, []step{{answers: "0.7 - -", open: 2}, {answers: "0.7 - -", open: 2, again: most}, {answers: "0.7 0.9 -", winner: "b", ended: selection.EndedAcceptable}}},
		"the last is taken as it is":  {three, []step{{answers: "0.7 - -", open: 2}, {answers: "0.7 ? -", open: 3}, {answers: "0.7 ? -"}, {answers: "0.7 ? 0.1", winner: "c", ended: selection.EndedAll}}},
		"failures go on":              {three, []step{{answers: "! - -", open: 2}, {answers: "! ! -", open: 3}, {answers: "! ! !", winner: "!", ended: selection.EndedAll}}},
		"the last fails":              {three, []step{{answers: "0.7 - -", open: 2}, {answers: "0.7 0.1 -", open: 3}, {answers: "0.7 0.1 !", winner: "b", ended: selection.EndedAll}}},
		"kept till the deadline":      {three, []step{{answers: "0.7 - -", open: 2}, {at: budget, answers: "0.7 - -", winner: "a", ended: selection.EndedDeadline}}},
		"no time for the next":        {slow, []step{{at: 91 * time.Millisecond, answers: "0.7 - -", winner: "a", ended: selection.EndedTime}}},
		"just time for the next":      {slow, []step{{at: 90 * time.Millisecond, answers: "0.7 - -", open: 2}}},
		"no time for the last":        {slow, []step{{answers: "0.7 - -", open: 2}, {at: 41 * time.Millisecond, answers: "0.7 0.2 -", winner: "b", ended: selection.EndedTime}}},
		"no time, and nothing else":   {slow, []step{{at: 91 * time.Millisecond, answers: "! - -", open: 2}}},
		"a silent one is passed":      {three, []step{{at: half, answers: "- - -", open: 2}, {at: half, answers: "- - -", open: 2, again: most}, {at: most, answers: "- - -", open: 3}, {at: most, answers: "- - 0.1", winner: "c", ended: selection.EndedCertain}}},
		"as late as it can be":        {slow, []step{{answers: "- - -", open: 1, again: budget - 20*time.Millisecond}, {at: budget - 20*time.Millisecond, answers: "- - -", open: 2}}},
		"not before half of the time": {heavy, []step{{answers: "- - -", open: 1, again: half}}},
		"the silent one comes, sure":  {three, []step{{at: half, answers: "- - -", open: 2}, {at: half, answers: "0.9 - -", winner: "a", ended: selection.EndedAcceptable}}},
		"silent to the end":           {three, []step{{at: half, answers: "- - -", open: 2}, {at: budget, answers: "- - -", winner: "late", ended: selection.EndedDeadline}}},
		"others left out under load":  {three, []step{{answers: "0.7", winner: "a", ended: selection.EndedAll}}},
		"one that cannot be asked":    {three, []step{{answers: "- - !", open: 1, again: half}, {answers: "0.7 - !", open: 2}, {answers: "0.7 0.9 !", winner: "b", ended: selection.EndedAcceptable}}},
		"the next cannot be asked":    {three, []step{{answers: "- ! -", open: 1, again: half}, {answers: "0.7 ! -", open: 3}, {answers: "0.7 ! 0.1", winner: "c", ended: selection.EndedAll}}},
		"what was opened is not shut": {slow, []step{{at: 40 * time.Millisecond, answers: "0.7 0.2 -", open: 3}, {at: 60 * time.Millisecond, answers: "0.7 0.2 -"}}},
	} {
		t.Run(name, func(t *testing.T) { plays(t, p, test.there, test.steps...) })
	}
}

func TestCascadeByCost(t *testing.T) {
	list := candidates("a:1", "b:1", "c:1", "d:1")
	list[0].Cost, list[2].Cost = 9, 0.5
	costs := map[string]float64{"a": 9, "c": 0.5}
	links := []string{"d", "a", "b", "c"}
	for want, spec := range map[string]serving.PolicySpec{
		"c:1 d:1 b:1 a:1": {Costs: costs},
		"a:1 c:1":         {Costs: costs, Models: []string{"a", "c"}},
		"c:1 d:1":         {Costs: costs, Most: 2},
	} {
		var plan selection.Plan
		NewCascade(spec, links).Select(nil, &selection.Query{}, list, &plan)
		if got := names(&plan); !slices.Equal(got, strings.Fields(want)) || plan.Now != 1 || plan.Asks[0].Weight != 1 {
			t.Errorf("%+v asks %v, not %s: %+v", spec, got, want, plan)
		}
	}
}

func TestSurenessThatIsNone(t *testing.T) {
	nan := serving.Number(0)
	nan.Name, nan.Data = "quality", []byte{1, 0, 0, 0, 0, 0, 0xf8, 0x7f}
	s := newSureness(&serving.PolicySpec{Qualifier: "quality", Confidence: -10})
	for name, o := range map[string]*serving.Output{
		"none":     {},
		"NaN":      {Qualifiers: []serving.Value{nan}},
		"a text":   {Qualifiers: []serving.Value{{Name: "quality", DType: serving.String, Data: []byte("9")}}},
		"a vector": {Qualifiers: []serving.Value{{Name: "quality", DType: serving.Float64, Shape: []int{2}, Data: make([]byte, 16)}}},
	} {
		if s.enough(o) {
			t.Errorf("%s is sure enough", name)
		}
	}
	if zero := 0.0; s.enough(&serving.Output{Confidence: &zero}) {
		t.Error("the confidence counts though a qualifier is named")
	}
}

func Benchmark(b *testing.B) {
	list := candidates("a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1", "h:1", "i:1", "j:1")
	links := []string{"j", "a", "i", "b", "h", "c", "g", "d", "f", "e"}
	for name, p := range map[string]selection.Policy{
		"guaranteed":       NewGuaranteed(serving.PolicySpec{}, links),
		"first_acceptable": NewFirstAcceptable(serving.PolicySpec{Qualifier: "quality"}, links),
		"hedge":            NewHedge(serving.PolicySpec{}, links),
		"cascade":          NewCascade(serving.PolicySpec{Costs: map[string]float64{"a": 2}}, links),
	} {
		b.Run(name, func(b *testing.B) {
			q, answers := &selection.Query{Budget: budget}, make([]selection.Answer, len(list))
			quality := serving.Number(0.5)
			quality.Name = "quality"
			for i := range answers {
				answers[i].Output = &serving.Output{Qualifiers: []serving.Value{quality}}
			}
			var plan selection.Plan
			b.ReportAllocs()
			for b.Loop() {
				plan.Reset()
				p.Select(nil, q, list, &plan)
				p.Combine(nil, &plan, answers[:len(plan.Asks)], selection.Moment{Budget: budget})
			}
		})
	}
}
