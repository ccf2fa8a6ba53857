package serving_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

func TestPipelineCheck(t *testing.T) {
	for want, p := range map[string]serving.Pipeline{
		"use a name of 1 to 63":          {{Name: "a b"}},
		"names the query's input":        {{Name: "input"}},
		"another stage has this name":    {{Name: "a"}, {Name: "a"}},
		"which is not a stage before it": {{Name: "a", After: []string{"b"}}, {Name: "b"}},
		"twice":                          {{Name: "a"}, {Name: "b", After: []string{"a", "a"}}},
		`"a" feeds no other stage`:       {{Name: "a"}, {Name: "b", After: []string{"input"}}},
		"workers must be":                {{Name: "a", Workers: 65}},
		"cpus must be":                   {{Name: "a", CPUs: []int{-1}}},
		"is unknown":                     {{Name: "a", Batch: serving.StageBatch{Strategy: "best"}}},
		"needs max_size":                 {{Name: "a", Batch: serving.StageBatch{Strategy: "fixed"}}},
		"max_size must be":               {{Name: "a", Batch: serving.StageBatch{MaxSize: -1}}},
		"delay must be":                  {{Name: "a", Batch: serving.StageBatch{Delay: serving.Duration(time.Minute)}}},
		"at most 32 stages":              make(serving.Pipeline, 33),
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
}

// genPipeline draws a sound pipeline: each stage but the last feeds the next one, too.
func genPipeline(t *rapid.T) serving.Pipeline {
	var p serving.Pipeline
	for i := range rapid.IntRange(1, 6).Draw(t, "stages") {
		s := serving.Stage{Name: string(rune('a' + i)), Workers: rapid.IntRange(0, 4).Draw(t, "workers"), Idempotent: rapid.Bool().Draw(t, "idempotent")}
		if i > 0 && rapid.Bool().Draw(t, "joins") {
			s.After = []string{p[i-1].Name, serving.QueryInput}
		}
		if rapid.Bool().Draw(t, "batches") {
			s.Batch = serving.StageBatch{Strategy: "fixed", MaxSize: rapid.IntRange(1, 64).Draw(t, "size"), Delay: serving.Duration(1000 * rapid.Int64Range(0, 1e6).Draw(t, "delay"))}
		}
		p = append(p, s)
	}
	return p
}

func TestPipelineRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPipeline(t)
		text := p.JSON()
		back, err := serving.ParsePipeline([]byte(text))
		if err != nil || !reflect.DeepEqual(back, p) {
			t.Fatalf("%s came back as %+v, %v", text, back, err)
		}
	})
}

func FuzzParsePipeline(f *testing.F) {
	f.Add([]byte(`[{"name":"a"},{"name":"b","after":["a","input"],"batch":{"strategy":"aimd"}}]`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`{"name":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := serving.ParsePipeline(text)
		if err != nil {
			return
		}
		if err := p.Check(); err != nil || len(p) == 0 || len(p) > serving.MaxStages {
			t.Errorf("%d stages were taken: %v", len(p), err)
		}
		for i := range p {
			if len(p.Sources(i)) == 0 {
				t.Errorf("stage %d takes nothing", i)
			}
		}
	})
}

// TestWireForms are what containers and sidecars read, byte for byte: jobs compare the text.
func TestWireForms(t *testing.T) {
	batch := serving.StageBatch{Strategy: "fixed", MaxSize: 8, Delay: serving.Duration(1500 * time.Microsecond), Pad: true}
	p := serving.Pipeline{{Name: "a"}, {Name: "b", Code: "m:B", Batch: batch, Idempotent: true}}
	if got, want := p.JSON(), `[{"name":"a"},{"name":"b","code":"m:B","batch":{"strategy":"fixed","max_size":8,"delay_micros":1500,"pad":true},"idempotent":true}]`; got != want {
		t.Errorf("a pipeline is\n%s, want\n%s", got, want)
	}
	v := serving.Version{
		ModelID: serving.ModelID{Model: "m", Version: "1"}, Generation: "g", InputType: serving.Doubles, InputLength: 3, Replicas: 2, Labels: []string{"x"},
		Batch: serving.BatchSpec(batch), Container: serving.Container{Addr: "10.0.0.7:7000", Protocol: "v1", Connections: 4, Env: map[string]string{"TOKEN": "s3cret"}},
	}
	want := `[{"model":"m","version":"1","input_type":"doubles","input_length":3,"replicas":0,"batch":{"strategy":"fixed","max_size":8,"delay_micros":1500,"pad":true},` +
		`"container_addr":"10.0.0.7:7000","protocol":"v1","connections":4,"generation":"g"}]`
	if got := v.SidecarJSON(); got != want {
		t.Errorf("a version is\n%s, want\n%s", got, want)
	}
	back, err := serving.ParseSidecarVersions([]byte(want))
	v.Replicas, v.Labels, v.Container.Env = 0, nil, nil
	if err != nil || len(back) != 1 || !reflect.DeepEqual(back[0], &v) {
		t.Errorf("it is read as %+v, %v", back, err)
	}
}
