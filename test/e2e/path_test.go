package e2e

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

// Each query gets its own answer, of many at a time and of many in one batch.
func TestAQueryGetsItsOwnAnswer(t *testing.T) {
	bubble(t, func(s *story) {
		s.deploy("m", sum)
		s.app("app", serving.PolicySpec{}, "m")
		e := s.gateway(nil)
		var clients sync.WaitGroup
		for c := range 8 {
			clients.Go(func() {
				for i := range 50 {
					x := float64(1000*c + i)
					if a := e.ask("app", fmt.Sprintf(`{"input":[%v,0.5]}`, x)); a.Default || a.Output != x+0.5 {
						t.Errorf("client %d gets %s for %v, want %v", c, a.text, x, x+0.5)
					}
				}
			})
		}
		clients.Wait()
		var inputs []string
		for i := range 500 {
			inputs = append(inputs, fmt.Sprintf("[%d,0.25]", i))
		}
		for i, a := range e.askAll("app", inputs) {
			if want := float64(i) + 0.25; a.Default || a.Output != want {
				t.Errorf("answer %d of a batch is %v, want %v", i, a.Output, want)
			}
		}
	})
}

// The explanation says who was asked and said what, with which weight, and why it ended.
func TestAnAnswerExplainsItself(t *testing.T) {
	bubble(t, func(s *story) {
		s.deploy("a", says("cat").sure(0.6))
		s.deploy("b", fails("too blue"))
		s.deploy("c", says("dog").after(time.Second))
		s.app("app", serving.PolicySpec{Kind: serving.PolicyVote, WithinMicros: 200_000, Weights: map[string]float64{"a": 1, "b": 1, "c": 2}}, "a", "b", "c")
		s.app("blue", serving.PolicySpec{}, "b")
		e := s.gateway(nil)
		const answer = `{"output":"cat","confidence":0.6,"default":false,"missing":["c:1","b:1"]}`
		for _, test := range []struct{ app, body, want string }{
			{"app", `{"input":[1],"explain":true}`, strings.TrimSuffix(answer, "}") + `,"explanation":{"policy":"vote","ended":"time","confidence":0.25,"elapsed_micros":200000,"budget_micros":29999500,"models":[` +
				`{"model":"c:1","asked":true,"answered":false,"probability":1,"weight":0.5},` +
				`{"model":"a:1","asked":true,"answered":true,"output":"cat","probability":1,"weight":0.25,"confidence":0.6,"took_micros":1000},` +
				`{"model":"b:1","asked":true,"answered":false,"failure":"Model error: too blue","probability":1,"weight":0.25,"took_micros":1000}]}}`},
			{"app", `{"input":[2]}`, answer},
			{"blue", `{"input":[1]}`, `{"output":-1,"default":true,"default_explanation":"Model error: too blue"}`},
		} {
			if got := e.ask(test.app, test.body).text; got != test.want {
				t.Errorf("%s answers %s with\n\t%s, want\n\t%s", test.app, test.body, got, test.want)
			}
		}
	})
}

// A model with a signature gets its inputs by name, and its outputs come back by name, with its
// confidence and its qualifiers.
func TestTensors(t *testing.T) {
	signature := &serving.Signature{
		Inputs:  []serving.Tensor{{Name: "image", Type: serving.ElementType(serving.Uint8), Shape: []int{-1, 2}}, {Name: "text", Type: serving.ElementType(serving.String)}},
		Outputs: []serving.Tensor{{Name: "score", Type: serving.ElementType(serving.Float32)}, {Name: "words", Type: serving.ElementType(serving.String), Shape: []int{-1}}},
	}
	bubble(t, func(s *story) {
		v := s.version("m", "1")
		v.InputType, v.Signature = serving.Tensors, signature
		asked := 0
		s.replica(v, model(score).sure(0.75).beside("mood", "calm").counted(&asked))
		app := s.app("app", serving.PolicySpec{}, "m")
		app.InputType, app.Signature = serving.Tensors, signature
		e := s.gateway(nil)
		const answer = `{"output":10.0,"outputs":{"score":10.0,"words":["a","b"]},"confidence":0.75,"qualifiers":{"mood":"calm"},"default":false}`
		for _, test := range []struct{ body, want string }{
			{`{"inputs":{"image":[[1,2],[3,4]],"text":"a b"}}`, answer},
			{`{"inputs":{"text":"a b","image":[[1,2],[3,4]]}}`, answer}, // from the cache
			{`{"inputs":{"image":[[1]],"text":"a"}}`, `{"error":"Json error","cause":"inputs.image[0] must have 2 elements: \"image\" is uint8[-1,2]"}`},
			{`{"inputs":{"image":[],"text":"wrong"}}`, `{"output":-1,"default":true,"default_explanation":"Model error: the outputs are not those of the signature: \"score\" is int32, and float32 is wanted"}`},
		} {
			_, text := e.post("app/predict", test.body)
			if got := queryID.ReplaceAllString(text, ""); got != test.want {
				t.Errorf("%s: got\n\t%s, want\n\t%s", test.body, got, test.want)
			}
		}
		if asked != 2 {
			t.Errorf("the model was asked %d times, want 2", asked)
		}
	})
}

// score adds up an image and splits a text. Its outputs come in any order, and are wrong when the text
// says so.
func score(q gocontainer.Query) gocontainer.Result {
	total := float32(0)
	for _, b := range q.Input("image").Data {
		total += float32(b)
	}
	fields := strings.Fields(string(q.Input("text").Data))
	var words []byte
	for _, word := range fields {
		words = serving.AppendElement(words, word)
	}
	score := serving.Value{Name: "score", DType: serving.Float32, Data: binary.LittleEndian.AppendUint32(nil, math.Float32bits(total))}
	if fields[0] == "wrong" {
		score.DType = serving.Int32
	}
	return gocontainer.Result{Outputs: []serving.Value{{Name: "words", DType: serving.String, Shape: []int{len(fields)}, Data: words}, score}}
}

// A version with sessions gets user and context, and its answers are not shared between users.
func TestSessions(t *testing.T) {
	bubble(t, func(s *story) {
		v := s.version("m", "1")
		v.Session = true
		asked := 0
		s.replica(v, func(q gocontainer.Query) gocontainer.Result {
			asked++
			return gocontainer.Result{Output: serving.Text(fmt.Sprintf("%d: %s in %s, %v left", asked, q.User, q.Context, q.Left))}
		})
		s.app("app", serving.PolicySpec{}, "m")
		e := s.gateway(nil)
		for _, test := range []struct{ user, context, want string }{
			{"ann", "shop", "1: ann in shop, 29.9995s left"},
			{"bob", "shop", "2: bob in shop, 29.9995s left"},
			{"ann", "home", "3: ann in home, 29.9995s left"},
			{"ann", "shop", "1: ann in shop, 29.9995s left"}, // from the cache
		} {
			e.wants("app", fmt.Sprintf(`{"input":[1],"uid":%q,"context":%q}`, test.user, test.context), test.want)
		}
	})
}
