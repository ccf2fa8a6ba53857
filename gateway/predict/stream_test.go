package predict

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// counts answers with the numbers from 1 to n, one every interval from the first on, and then with
// what ends the answer.
func counts(n int, every time.Duration, end rpc.Answer) func(arrival, bool, func(rpc.Answer)) {
	return func(q arrival, parts bool, send func(rpc.Answer)) {
		for i := range n {
			time.Sleep(every)
			if part := number(float64(i + 1)); parts {
				part.More = true
				send(part)
			}
		}
		send(end)
	}
}

// received is an answer as its client gets it.
type received struct {
	parts []string
	at    []time.Duration
	end   time.Duration
	err   error
	*serving.Prediction
}

// stream asks for an answer in parts and reads it to its end.
func (r *rig) stream(q *serving.Query) (got received) {
	r.Helper()
	start := time.Now()
	s, err := r.p.Stream(q)
	if err != nil {
		r.Error(err)
		return received{Prediction: &serving.Prediction{}}
	}
	defer s.Close()
	for {
		out, err := s.Next(r.ctx)
		if err != nil {
			got.end, got.err, got.Prediction = time.Since(start), err, s.Answer()
			return got
		}
		got.parts, got.at = append(got.parts, string(out.JSON)), append(got.at, time.Since(start))
	}
}

func TestPartsComeAsTheModelMakesThem(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", nil, m1)
		f.streams = counts(3, 50*time.Millisecond, number(7))
		t.serves(nil, m1)
		got := t.stream(newQuery(1))
		if strings.Join(got.parts, " ") != "1.0 2.0 3.0" || got.err != io.EOF || got.Default || string(got.Output) != "7.0" {
			t.Errorf("%+v", got)
		}
		for i, at := range got.at {
			if want := time.Duration(i+1) * 50 * time.Millisecond; at != want {
				t.Errorf("part %d came after %v", i, at)
			}
		}
		if again := t.stream(newQuery(1)); strings.Join(again.parts, " ") != "7.0" || !again.Cached || again.end != 0 {
			t.Errorf("from the cache: %+v", again) // the whole
		}
		if p, err := one(t.ctx, t.p, newQuery(1)); err != nil || string(p.Output) != "7.0" || !p.Cached {
			t.Errorf("as a whole: %+v, %v", p, err)
		}
		if n := len(f.questions()); n != 1 {
			t.Errorf("the replica was asked %d times", n)
		}
	})
}

// A stream has the objective of the first part, those between parts, and that of all.
func TestEachObjectiveOfAStream(t *testing.T) {
	for name, test := range map[string]struct {
		parts   int
		every   time.Duration
		got     int
		end     time.Duration
		because string
	}{
		"the first part is late": {1, 2 * slo, 0, slo - margin, ""},
		"a later part is late":   {1, slo / 2, 1, slo/2 + 300*time.Millisecond, "slo_between"},
		"the answer has no end":  {1000, slo / 2, 19, time.Second, "slo_total"},
	} {
		bubble(t, func(t *rig) {
			f := t.replica("a", nil, m1)
			f.streams = func(q arrival, parts bool, send func(rpc.Answer)) {
				counts(test.parts, test.every, rpc.Answer{})(q, parts, func(a rpc.Answer) {
					if a.More {
						send(a)
					}
				})
			}
			t.serves(func(a *serving.App) {
				a.SLOBetween, a.SLOTotal = serving.Duration(300*time.Millisecond), serving.Duration(time.Second)
			}, m1)
			got := t.stream(newQuery(1))
			if len(got.parts) != test.got || got.end != test.end || !got.Default || got.Cause != serving.MissedSLO || !strings.Contains(got.Explanation, test.because) {
				t.Errorf("%s: %d parts, %v, %+v", name, len(got.parts), got.end, got.Prediction)
			}
			t.settle()
			if f.cancelled() != 1 {
				t.Errorf("%s: %d cancelled", name, f.cancelled())
			}
			time.Sleep(time.Minute)
		})
	}
}

// A model that is never silent is cut at slo_total, too.
func TestAStreamWithoutAPauseEnds(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", nil, m1)
		f.streams = counts(5000, time.Millisecond, number(7))
		t.serves(func(a *serving.App) { a.SLOTotal = serving.Duration(time.Second) }, m1)
		s, err := t.p.Stream(newQuery(1))
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		start := time.Now()
		for err == nil {
			_, err = s.Next(t.ctx)
			time.Sleep(2 * time.Millisecond) // a reader that always finds a part
		}
		if took := time.Since(start); took > 1100*time.Millisecond || !strings.Contains(s.Answer().Explanation, "slo_total") {
			t.Errorf("it ended after %v: %+v", took, s.Answer())
		}
		time.Sleep(5 * time.Second)
	})
}

// Before the first part a second replica is asked, as for any answer; after it none can go on.
func TestAStreamThatFails(t *testing.T) {
	bubble(t, func(t *rig) {
		dies := counts(2, 10*time.Millisecond, rpc.Answer{Status: rpc.StatusContainer, Message: []byte("it died")})
		f := t.replica("a", nil, m1)
		f.streams = dies
		t.serves(nil, m1)
		got := t.stream(newQuery(1))
		if len(got.parts) != 2 || !got.Default || got.Cause != serving.ContainerError || len(f.questions()) != 1 {
			t.Errorf("after parts: %+v, asked %d times", got, len(f.questions()))
		}
	})
	bubble(t, func(t *rig) {
		calls := 0
		streams := func(q arrival, parts bool, send func(rpc.Answer)) {
			if calls++; calls == 1 {
				send(rpc.Answer{Status: rpc.StatusContainer, Message: []byte("it died")})
				return
			}
			counts(2, 10*time.Millisecond, number(7))(q, parts, send)
		}
		a, b := t.replica("a", nil, m1), t.replica("b", nil, m1)
		a.streams, b.streams = streams, streams
		t.serves(nil, m1)
		if got := t.stream(newQuery(1)); len(got.parts) != 2 || got.Default || calls != 2 {
			t.Errorf("before parts: %+v, %d calls", got, calls)
		}
	})
}

// What was silent for half of the time goes to a second replica; the one that speaks first is heard
// to the end.
func TestAHedgedStream(t *testing.T) {
	bubble(t, func(t *rig) {
		a, b := t.replica("a", nil, m1), t.replica("b", nil, m1)
		a.streams = counts(3, 70*time.Millisecond, number(7))
		b.streams = counts(3, 70*time.Millisecond, number(7))
		t.serves(nil, m1)
		got := t.stream(newQuery(1))
		if strings.Join(got.parts, " ") != "1.0 2.0 3.0" || got.Default {
			t.Errorf("%+v", got)
		}
		if a.cancelled()+b.cancelled() != 1 {
			t.Errorf("%d and %d cancelled", a.cancelled(), b.cancelled())
		}
	})
}

func TestAReaderThatLeavesStopsTheModel(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", nil, m1)
		f.streams = counts(5, 50*time.Millisecond, number(7))
		t.serves(func(a *serving.App) { a.ShareStreams = true }, m1)
		first, err := t.p.Stream(newQuery(1))
		require.NoError(t, err)
		second, err := t.p.Stream(newQuery(1))
		require.NoError(t, err)
		for _, s := range []serving.Parts{first, second} {
			if out, err := s.Next(t.ctx); err != nil || string(out.JSON) != "1.0" {
				t.Errorf("%v, %v", out, err)
			}
		}
		first.Close()
		t.settle()
		if f.cancelled() != 0 {
			t.Error("the answer that another reads was cancelled")
		}
		second.Close()
		t.settle()
		if f.cancelled() != 1 || len(f.questions()) != 1 {
			t.Errorf("%d cancelled of %d", f.cancelled(), len(f.questions()))
		}
	})
}

// A reader that does not read is cut off, and the others are not.
func TestASlowReaderIsCutOff(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", nil, m1)
		large := rpc.Answer{Payload: rpc.AppendPayload(nil, serving.Text(strings.Repeat("x", 300<<10)))}
		f.streams = func(q arrival, parts bool, send func(rpc.Answer)) {
			for range 8 {
				time.Sleep(10 * time.Millisecond)
				part := large
				part.More = true
				send(part)
			}
			send(rpc.Answer{Payload: []byte{0, 0}})
		}
		t.serves(func(a *serving.App) { a.ShareStreams = true }, m1)
		slow, err := t.p.Stream(newQuery(1))
		require.NoError(t, err)
		defer slow.Close()
		if got := t.stream(newQuery(1)); len(got.parts) != 8 || got.Default || string(got.Output) != "null" {
			t.Errorf("who reads got %d parts: %+v", len(got.parts), got.Prediction)
		}
		for err = nil; err == nil; {
			_, err = slow.Next(t.ctx)
		}
		if !errors.Is(err, io.EOF) || !slow.Answer().Default || !strings.Contains(slow.Answer().Explanation, "slowly") {
			t.Errorf("who does not got %v: %+v", err, slow.Answer())
		}
		if p, err := one(t.ctx, t.p, newQuery(1)); err != nil || p.Cached {
			t.Errorf("an answer that was not collected is cached: %+v, %v", p, err)
		}
	})
}

// The answer of stages is one part, and who leaves them leaves what is asked then.
func TestStagesAsAStream(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("ra", plus(10, 10*time.Millisecond), a1)
		t.replica("rb", plus(100, 10*time.Millisecond), b1)
		t.staged(nil, stage("first", "a"), stage("second", "b"))
		if got := t.stream(newQuery(7)); strings.Join(got.parts, " ") != "117.0" || got.Default {
			t.Errorf("%+v", got)
		}
		s, err := t.p.Stream(newQuery(8))
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(5 * time.Millisecond)
		s.Close()
	})
}

// A policy that lets one model answer passes its parts on, however many others it has in reserve or in its shadow. They
// are not asked because the whole answer takes its time.
func TestPoliciesOfWhichOneModelAnswersStream(t *testing.T) {
	m2, n1 := id("m", "2"), id("n", "1")
	for name, c := range map[string]struct {
		policy serving.PolicySpec
		models []string
		of     serving.ModelID // any: a zero
		asked  int
	}{
		"canary": {serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "1", Share: 1}, []string{"m"}, m1, 1},
		"bandit": {serving.PolicySpec{Kind: serving.PolicyUCB1}, []string{"m", "n"}, serving.ModelID{}, 1},
		"prefer": {serving.PolicySpec{Kind: serving.PolicyPrefer, Order: []string{"n", "m"}}, []string{"m", "n"}, n1, 1},
		"shadow": {serving.PolicySpec{Kind: serving.PolicyShadow, Model: "n"}, []string{"m", "n"}, n1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				var replicas []*fake
				for i, m := range []serving.ModelID{m1, m2, n1} {
					f := t.replica(string(rune('a'+i)), nil, m)
					f.streams = counts(30, 20*time.Millisecond, number(7))
					replicas = append(replicas, f)
				}
				a := newApp("app", c.models...)
				a.Policy = c.policy
				t.set(newCatalog([]*serving.App{a}, newModel(m1, m2), newModel(n1)))
				got := t.stream(newQuery(1))
				if len(got.parts) != 30 || got.at[0] != 20*time.Millisecond || got.Default || string(got.Output) != "7.0" || c.of.Model != "" && got.Model != c.of {
					t.Errorf("%d parts, the first after %v: %+v", len(got.parts), got.at, got.Prediction)
				}
				asked := 0
				for _, f := range replicas {
					asked += len(f.questions())
				}
				if asked != c.asked {
					t.Errorf("%d models were asked", asked)
				}
			})
		})
	}
}

// A version on trial that fails before the first part makes way for the other, and one that fails later does not: what
// was given cannot be taken back.
func TestAVersionOnTrialThatFailsAsItStreams(t *testing.T) {
	m2 := id("m", "2")
	for given, want := range map[int]string{0: "1.0 2.0", 2: "1.0 2.0"} {
		bubble(t, func(t *rig) {
			trial, stable := t.replica("a", nil, m1), t.replica("b", nil, m2)
			stable.streams = counts(2, 10*time.Millisecond, number(7))
			trial.streams = counts(given, 10*time.Millisecond, rpc.Answer{Status: rpc.StatusModelError, Message: []byte("it broke")})
			t.serves(func(a *serving.App) {
				a.Policy = serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "1", Share: 1}
			}, m1, m2)
			got := t.stream(newQuery(1))
			if strings.Join(got.parts, " ") != want || got.Default != (given > 0) || len(stable.questions()) != 1-min(given, 1) {
				t.Errorf("%d parts and then a failure: %+v, %v", given, got.parts, got.Prediction)
			}
		})
	}
}

// A version on trial that is silent is not waited for: another one is asked, and answers as a whole. Who spoke first is
// heard to the end, and the other question is taken back.
func TestAVersionOnTrialThatIsSilentAsItStreams(t *testing.T) {
	m2 := id("m", "2")
	for _, silent := range []time.Duration{slo, slo * 4 / 5} {
		bubble(t, func(t *rig) {
			trial, stable := t.replica("a", nil, m1), t.replica("b", nil, m2)
			stable.streams = counts(2, slo/10, number(7))
			trial.streams = counts(3, silent, number(8))
			t.serves(func(a *serving.App) {
				a.Policy, a.SLOBetween = serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "1", Share: 1}, serving.Duration(time.Second)
			}, m1, m2)
			got := t.stream(newQuery(1))
			first := silent < slo
			if want := map[bool]string{true: "1.0 2.0 3.0", false: "7.0"}[first]; strings.Join(got.parts, " ") != want || got.Default {
				t.Errorf("silent for %v: %+v, %v", silent, got.parts, got.Prediction)
			}
			if n := stable.cancelled(); (n == 1) != first || len(stable.questions()) != 1 {
				t.Errorf("silent for %v: %d of %d cancelled", silent, n, len(stable.questions()))
			}
		})
	}
}
