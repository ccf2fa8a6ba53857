package usage

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

func fared(name string, ended bool, took time.Duration) []byte {
	return rpc.AppendStageTime(nil, rpc.StageTime{Name: []byte(name), Ended: ended, Took: took})
}

func TestStagesAreCountedByName(t *testing.T) {
	var s Stages
	now, of := time.Now(), serving.UsageKey{ModelID: serving.ModelID{Model: "m", Version: "1"}}
	both := append(fared("embed", false, time.Millisecond), fared("rank", false, 3*time.Millisecond)...)
	s.Ended(both, nil, now)
	s.Ended(both, nil, now)
	s.Ended(append(fared("embed", false, time.Millisecond), fared("rank", true, 0)...), failure(serving.ModelError), now)
	s.Ended(fared("embed", true, 0), failure(serving.MissedSLO), now)
	s.Ended(fared("embed", true, 0), nil, now) // says two things
	s.Ended(nil, nil, now)
	s.Ended([]byte{200}, nil, now)
	s.Ended(append(fared("../x", false, 1), fared("", false, 1)...), nil, now)
	embed, rank := of, of
	embed.Stage, rank.Stage = "embed", "rank"
	counted := s.Take(of)
	if len(counted) != 2 || counted[1].Last == nil || counted[1].Last.Message != "Model error: why" {
		t.Fatalf("%+v", counted)
	}
	counted[1].Last = nil
	for i, want := range []serving.Usage{
		{Key: embed, Answers: 3, Missed: 1, Micros: 3000, Least: time.Millisecond, Most: time.Millisecond},
		{Key: rank, Answers: 2, Failed: 1, Micros: 6000, Least: 3 * time.Millisecond, Most: 3 * time.Millisecond},
	} {
		if counted[i] != want {
			t.Errorf("got %+v, want %+v", counted[i], want)
		}
	}
	if counted := s.Take(of); counted != nil {
		t.Errorf("after all: %+v", counted)
	}
}

// TestStagesAreBounded has answers name more than there can be, many at once.
func TestStagesAreBounded(t *testing.T) {
	var s Stages
	var working sync.WaitGroup
	for range 4 {
		working.Go(func() {
			for i := range 1000 {
				s.Ended(fared(fmt.Sprint("s", i), false, time.Millisecond), nil, time.Now())
			}
		})
	}
	working.Wait()
	total := uint64(0)
	counted := s.Take(serving.UsageKey{})
	for _, u := range counted {
		total += u.Answers
	}
	if len(counted) != serving.MaxUsageStages || total != 4*serving.MaxUsageStages {
		t.Errorf("%d answers of %d stages", total, len(counted))
	}
}

func BenchmarkStages(b *testing.B) {
	var s Stages
	now := time.Now()
	three := append(append(fared("decode", false, 1), fared("embed", false, 2)...), fared("classify", false, 3)...)
	b.ReportAllocs()
	for b.Loop() {
		s.Ended(three, nil, now)
	}
}
