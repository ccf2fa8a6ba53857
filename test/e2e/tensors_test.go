//go:build system

package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// A model with a signature gets its inputs by name, and its outputs come back by name, with confidence:
// through the codec, the gateway, the sidecar and a container.
func TestTensors(t *testing.T) {
	signature := &serving.Signature{
		Inputs:  []serving.Tensor{{Name: "image", Type: serving.ElementType(serving.Uint8), Shape: []int{-1, 2}}, {Name: "text", Type: serving.ElementType(serving.String)}},
		Outputs: []serving.Tensor{{Name: "score", Type: serving.ElementType(serving.Float32)}, {Name: "words", Type: serving.ElementType(serving.String), Shape: []int{-1}}},
	}
	v := &serving.Version{ModelID: serving.ModelID{Model: "m", Version: "1"}, InputType: serving.Tensors, Signature: signature, Replicas: 1}
	cat := catalog(5*time.Second, v)
	app := cat.Apps["app"]
	app.InputType, app.Signature = serving.Tensors, signature
	r := newRig(t, 1<<20)
	if err := cat.Check(); err != nil {
		t.Fatal(err)
	}
	if err := r.predictor.SetCatalog(cat); err != nil {
		t.Fatal(err)
	}
	r.queries("r1", v, signature, func(queries []gocontainer.Query) []gocontainer.Result {
		results := make([]gocontainer.Result, len(queries))
		for i, q := range queries {
			sum := float32(0)
			for _, b := range q.Input("image").Data {
				sum += float32(b)
			}
			var words []byte
			fields := strings.Fields(string(q.Input("text").Data))
			for _, word := range fields {
				words = serving.AppendElement(words, word)
			}
			confidence := 0.75
			score := serving.Value{Name: "score", DType: serving.Float32, Data: binary.LittleEndian.AppendUint32(nil, math.Float32bits(sum))}
			if fields[0] == "wrong" {
				score.DType, score.Data = serving.Int32, score.Data[:4]
			}
			results[i] = gocontainer.Result{Confidence: &confidence, Outputs: []serving.Value{
				{Name: "words", DType: serving.String, Shape: []int{len(fields)}, Data: words}, score, // in any order
			}}
		}
		return results
	})
	r.ready(v.ModelID, 1)
	ask := func(body string) string {
		t.Helper()
		request, err := codec.DecodePredict([]byte(body), app, 1)
		if err != nil {
			return err.Error()
		}
		p, err := r.predictor.Predict(context.Background(), &serving.Query{App: "app", Input: request.Input})
		if err != nil {
			return err.Error()
		}
		text := string(codec.AppendPrediction(nil, p))
		return strings.Replace(text, fmt.Sprintf(`"query_id":%d,`, p.QueryID), "", 1)
	}
	for _, tt := range []struct{ body, want string }{
		{`{"inputs":{"image":[[1,2],[3,4]],"text":"a b"}}`, `{"output":10.0,"outputs":{"score":10.0,"words":["a","b"]},"confidence":0.75,"default":false}`},
		{`{"inputs":{"text":"a b","image":[[1,2],[3,4]]}}`, `{"output":10.0,"outputs":{"score":10.0,"words":["a","b"]},"confidence":0.75,"default":false}`}, // from the cache
		{`{"inputs":{"image":[[1]],"text":"a"}}`, `inputs.image[0] must have 2 elements: "image" is uint8[-1,2]`},
		{`{"inputs":{"image":[],"text":"wrong"}}`, `{"output":-1,"default":true,"default_explanation":"Model error: the outputs are not those of the signature: \"score\" is int32, and float32 is wanted"}`},
	} {
		if got := ask(tt.body); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.body, got, tt.want)
		}
	}
	p, err := r.predictor.Predict(context.Background(), &serving.Query{App: "app", Input: mustDecode(t, app, `{"inputs":{"text":"a b","image":[[1,2],[3,4]]}}`)})
	if err != nil || !p.Cached || len(p.Full.Values) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}

func mustDecode(t *testing.T, app *serving.App, body string) serving.Input {
	t.Helper()
	request, err := codec.DecodePredict([]byte(body), app, 1)
	if err != nil {
		t.Fatal(err)
	}
	return request.Input
}

// A version with session = true gets user and context, and its answers are not shared between users.
func TestSessions(t *testing.T) {
	v := version("m", "1")
	v.Session = true
	cat := catalog(5*time.Second, v)
	r := newRig(t, 1<<20)
	if err := r.predictor.SetCatalog(cat); err != nil {
		t.Fatal(err)
	}
	r.queries("r1", v, nil, func(queries []gocontainer.Query) []gocontainer.Result {
		results := make([]gocontainer.Result, len(queries))
		for i, q := range queries {
			results[i].Output = serving.Text(fmt.Sprintf("%s in %s, %v", q.User, q.Context, q.Left > 0 && q.Left < 5*time.Second))
		}
		return results
	})
	r.ready(v.ModelID, 1)
	for _, tt := range []struct {
		user, context, want string
		cached              bool
	}{
		{"ann", "shop", `"ann in shop, true"`, false},
		{"bob", "shop", `"bob in shop, true"`, false},
		{"ann", "home", `"ann in home, true"`, false},
		{"ann", "shop", `"ann in shop, true"`, true},
	} {
		p, err := r.predictor.Predict(context.Background(), &serving.Query{App: "app", Input: doubles(1), User: tt.user, Context: tt.context})
		if err != nil || string(p.Output) != tt.want || p.Cached != tt.cached {
			t.Errorf("%s, %s: %s, cached %v, %v", tt.user, tt.context, p.Output, p.Cached, err)
		}
	}
}
