package records

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/mapping"
	"github.com/topsail-serving/topsail/test/require"
)

// sum answers the sum of the numbers, with a qualifier that says whether it is large.
func sum(_ context.Context, q *serving.Query) (serving.Prediction, error) {
	total := 0.
	for data := q.Input.Data; len(data) >= 8; data = data[8:] {
		total += math.Float64frombits(binary.LittleEndian.Uint64(data))
	}
	size := "small"
	if total > 10 {
		size = "large"
	}
	certain := 0.5
	return serving.Prediction{
		Output: fmt.Appendf(nil, "%v", total), Model: serving.ModelID{Model: "m", Version: "1"}, Confidence: &certain,
		Qualifiers: []serving.Value{{Name: "size", DType: serving.String, Data: []byte(size)}},
	}, nil
}

// jsonTopic reads records of JSON.
func jsonTopic(record mapping.Config, result mapping.ResultConfig) func(*Config) {
	record.Format = mapping.JSON
	if result.Value == "" {
		result.Value = mapping.Prediction
	}
	result.Format = mapping.JSON
	return func(c *Config) { c.Topic = &Topic{Record: record, Result: result} }
}

func values(records []serving.StreamRecord) (all []string) {
	for _, r := range records {
		all = append(all, string(r.Value))
	}
	return all
}

// TestRecordsAsTheyAre: the fields of an order are the input, and the order gets the prediction.
func TestRecordsAsTheyAre(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		message := func(value string, headers ...serving.StreamHeader) serving.StreamMessage {
			return serving.StreamMessage{Stream: "in", Key: []byte("k"), Value: []byte(value), Headers: headers}
		}
		header := func(name, value string) serving.StreamHeader {
			return serving.StreamHeader{Name: name, Value: []byte(value)}
		}
		broker.write(
			message(`{"order": {"id": 7}, "customer": {"name": "ann"}, "price": 2.5, "new": true, "items": [{"n": 1}, {"n": 3}]}`,
				header("shop", "berlin"), header("content-type", "application/json"), header("topsail-reason", "old"), header("traceparent", "00-1-2-01")),
			message(`{"order": {"id": "8"}, "price": null, "new": false, "items": [{"n": 1}, {"n": 3}]}`),
			message(`{"order": {"id": "9"}, "new": false, "items": [{"n": 1}, {"n": 3}]}`),
			message(`{"order": {"id": "10"}, "price": 1, "new": "yes", "items": [{"n": 1}, {"n": 3}]}`),
			message(`{"price": 1}`),
			message(`{"order": {"id": 1.5}}`),
			message(`[`), message(``),
		)
		s := newScorer(sum)
		j, _, _ := run(t, broker, s, func(c *Config) {
			jsonTopic(mapping.Config{
				Fields: []string{"price", "new", "items[1].n"}, ID: "order.id", User: "customer.name", Context: "header:shop", Key: "key:",
			}, mapping.ResultConfig{Value: mapping.WithRecord, Add: map[string]string{"score": "output", "by": "model", "size": "qualifiers.size", "none": "a.b"}})(c)
			c.Spread.By = SpreadKey
		})
		settled(time.Minute)
		out := broker.read("out")
		want := `{"order": {"id": 7}, "customer": {"name": "ann"}, "price": 2.5, "new": true, "items": [{"n": 1}, {"n": 3}],"by":"m","none":null,"score":6.5,"size":"small"}`
		if got := values(out); !slices.Equal(got, []string{want}) {
			t.Errorf("results %s", got)
		}
		if len(out) == 1 {
			if r := out[0]; r.Header("content-type") != "application/json" || r.Header("traceparent") != "00-1-2-01" || r.Header("shop") != "berlin" || r.Header("topsail-reason") != "" || string(r.Key) != "k" {
				t.Errorf("the result is %+v", r)
			}
		}
		if q := s.asked()[0]; q.User != "ann" || q.Context != "berlin" || q.Affinity.Key != "k" {
			t.Errorf("query %+v", q)
		}
		var why []string
		for _, d := range broker.read("dead") {
			why = append(why, d.Header(stream.HeaderKind)+": "+d.Header(stream.HeaderReason))
		}
		for i, want := range []string{
			"wrong_input: price: it must be a number or a list of numbers, not null", "wrong_input: price: it is missing in the record",
			`wrong_input: new: it must be a number or a list of numbers, not the text "yes"`, "no_id: the record has no id at order.id",
			"unreadable: id, from order.id: it must be a text or a whole number, not 1.5",
			"unreadable: the value cannot be read as json: unexpected EOF", "unreadable: the record has no value",
		} {
			if i >= len(why) || !strings.HasPrefix(why[i], want) {
				t.Errorf("dead letters %s, want %s", why, want)
				break
			}
		}
		if got := j.Status().Tally; got != (Tally{Records: 8, Results: 1, DeadLetters: 7}) {
			t.Errorf("tally %+v", got)
		}
	})
}

// TestResultsAreRecords of a next stream: results of one are read by another, by their ids.
func TestResultsAreRecords(t *testing.T) {
	for _, envelope := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			first := newMemory("in")
			first.write(jsonRecord("a", 1), jsonRecord("b", 2))
			run(t, first, newScorer(double), func(c *Config) {
				if !envelope {
					jsonTopic(mapping.Config{Input: "input"}, mapping.ResultConfig{})(c)
				}
			})
			settled(time.Second)
			second := newMemory("in")
			for _, r := range first.read("out") {
				second.write(serving.StreamMessage{Stream: "in", Key: r.Key, Value: r.Value, Headers: r.Headers})
			}
			run(t, second, newScorer(double), jsonTopic(mapping.Config{Input: "output", ID: "uuid"}, mapping.ResultConfig{}))
			settled(time.Second)
			got, ids := results(t, second, "out"), []string{"a", "b"}
			if !envelope {
				ids = []string{"in/0/0", "in/0/1"}
			}
			if len(got) != 2 || string(got[ids[0]].Output) != "4" || string(got[ids[1]].Output) != "8" {
				t.Errorf("results %+v, dead letters %+v", got, second.read("dead"))
			}
		})
	}
}

// TestRoutes send results to several streams, or nowhere, by the first one that fits.
func TestRoutes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		for i, x := range []float64{1, 2, 20, 30, 5} {
			broker.write(jsonRecord(fmt.Sprint(i), x))
		}
		yes := true
		s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
			p, err := sum(ctx, q)
			p.Default = string(p.Output) == "5"
			return p, err
		})
		broker.largest = 400
		j, c, _ := run(t, broker, s, func(c *Config) {
			c.Routes = []Route{
				{Class: "2.0", Drop: true}, {App: "double", Qualifiers: map[string]string{"size": "large"}, Output: "large"},
				{Default: &yes, Output: "defaults"},
			}
		})
		settled(time.Second)
		for name, ids := range map[string][]string{"out": {"0"}, "large": {"2", "3"}, "defaults": {"4"}, "dead": nil} {
			var got []string
			for _, r := range broker.read(name) {
				response, err := ParseResponse(r.Value, stream.JSON)
				require.NoError(t, err)
				got = append(got, response.UUID)
			}
			if !slices.Equal(got, ids) {
				t.Errorf("%s has %v", name, got)
			}
		}
		if got := j.Status().Tally; got != (Tally{Records: 5, Results: 4, Defaults: 1, Dropped: 1}) {
			t.Errorf("tally %+v", got)
		}
		// A result that is too large is found behind one that is dropped.
		broker.mu.Lock()
		broker.largest = 300
		broker.mu.Unlock()
		broker.write(jsonRecord("drop", 2), jsonRecord(strings.Repeat("x", 250), 1))
		settled(time.Second)
		if dead := broker.read("dead"); len(dead) != 1 || dead[0].Header(stream.HeaderKind) != "result_too_large" || dead[0].Header(stream.HeaderPlace) != "0/6" {
			t.Errorf("dead letters %+v", dead)
		}
		_ = c
	})
}

// TestDroppedRecords are done, though nothing is written of them.
func TestDroppedRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		broker.write(jsonRecord("a", 1), jsonRecord("b", 2))
		s := newScorer(func(context.Context, *serving.Query) (serving.Prediction, error) {
			return missing(serving.ModelError), nil
		})
		j, c, _ := run(t, broker, s, func(c *Config) { c.Defaults = DefaultsDrop })
		settled(time.Second)
		lag, err := c.Lag(t.Context())
		if got := j.Status().Tally; got != (Tally{Records: 2, Dropped: 2}) || lag != 0 || err != nil || len(broker.read("out"))+len(broker.read("dead")) > 0 {
			t.Errorf("tally %+v, lag %d, %v", got, lag, err)
		}
	})
}

// signature is of an app with two inputs.
var signature = []serving.Tensor{
	{Name: "age", Type: serving.ElementType(serving.Float32)}, {Name: "words", Type: serving.ElementType(serving.String), Shape: []int{-1}},
}

// TestTensors are asked for by their names: in Topsail's own messages, and from anywhere in a record.
func TestTensors(t *testing.T) {
	s := func() *scorer {
		s := newScorer(func(_ context.Context, q *serving.Query) (serving.Prediction, error) {
			all, err := rpc.ParsePayload(q.Input.Data)
			if err != nil || serving.FitAll(signature, all) != nil {
				return serving.Prediction{}, fmt.Errorf("the input is %v, %w", all, err)
			}
			named, err := serving.AppendNamed(nil, all)
			return serving.Prediction{Output: named, Full: &serving.Output{NamedJSON: named}}, err
		})
		s.apps["double"] = &serving.App{Name: "double", InputType: serving.Tensors, Signature: &serving.Signature{Inputs: signature}}
		return s
	}
	const want = `{"age":4.5,"words":["a","b"]}`
	proto := (&Request{UUID: "p", Data: []byte(want)}).AppendProtobuf(nil)
	for name, one := range map[string]struct {
		value  string
		change func(*Config)
		reason string
	}{
		"json":         {`{"uuid": "p", "inputs": {"words": ["a", "b"], "age": 4.5}}`, nil, ""},
		"json, input":  {`{"uuid": "p", "input": {"words": ["a", "b"], "age": 4.5}}`, nil, ""},
		"protobuf":     {string(proto), nil, ""},
		"unknown":      {`{"uuid": "p", "inputs": {"words": [], "age": 4.5, "size": 1}}`, nil, `it has "size", and must have "age", "words"`},
		"missing":      {`{"uuid": "p", "inputs": {"words": []}}`, nil, `"age", which is float32: it is missing in the record`},
		"wrong":        {`{"uuid": "p", "inputs": {"words": [], "age": "old"}}`, nil, "must be a number"},
		"from a topic": {`{"person": {"age": 4.5}, "text": [{"w": ["a", "b"]}]}`, jsonTopic(mapping.Config{Inputs: map[string]string{"age": "person.age", "words": "text[0].w"}}, mapping.ResultConfig{}), ""},
		"as one field": {`{"in": {"words": ["a", "b"], "age": 4.5}}`, jsonTopic(mapping.Config{Input: "in"}, mapping.ResultConfig{}), ""},
		"not said":     {`{"person": {"age": 4.5}}`, jsonTopic(mapping.Config{Inputs: map[string]string{"age": "person.age"}}, mapping.ResultConfig{}), "do not say where it is"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				broker := newMemory("in")
				broker.write(serving.StreamMessage{Stream: "in", Value: []byte(one.value)})
				run(t, broker, s(), one.change)
				settled(time.Second)
				got := results(t, broker, "out")
				var outputs string
				for _, r := range got {
					outputs = string(r.Outputs)
				}
				dead := broker.read("dead")
				if one.reason == "" && (outputs != want || len(dead) > 0) {
					t.Errorf("results %+v, dead letters %+v", got, dead)
				}
				if one.reason != "" && (len(dead) != 1 || !strings.Contains(dead[0].Header(stream.HeaderReason), one.reason)) {
					t.Errorf("dead letters %s", asJSON(dead))
				}
			})
		})
	}
}

// TestNamedInputs of an app without a signature are its one input, as in the predict API.
func TestNamedInputs(t *testing.T) {
	r, err := ParseRequest([]byte(`{"uuid": "1", "inputs": {"input": [1]}}`), stream.JSON)
	require.NoError(t, err)
	in, err := r.Input(serving.Doubles)
	if err != nil || len(in.Data) != 8 {
		t.Errorf("%+v, %v", in, err)
	}
	if again := r.AppendJSON(nil); !json.Valid(again) || !strings.Contains(string(again), `"inputs":{"input": [1]}`) {
		t.Errorf("written again it is %s", again)
	}
	for _, wrong := range []string{`{"inputs": {"input": [1], "more": 2}}`, `{"inputs": {}}`, `{"inputs": [1]}`} {
		r, err := ParseRequest([]byte(wrong), stream.JSON)
		require.NoError(t, err)
		if _, err := r.Input(serving.Doubles); err == nil {
			t.Errorf("%s is an input", wrong)
		}
	}
	if _, err := ParseRequest([]byte(`{"inputs": {}, "input": [1]}`), stream.JSON); err == nil {
		t.Error("both are taken")
	}
}
