//go:build system

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/models"
	"github.com/topsail-serving/topsail/stream/records"
	"github.com/topsail-serving/topsail/test/require"
)

// adder is a model in Python that adds a number to the sum of the input.
func adder(t *testing.T, version string, n int) *models.Model {
	return &models.Model{
		Name: "sum", Version: version, Kind: "python", InputType: "doubles", Python: pythonMinor(t), Entry: "adder:predict",
		Data: fmt.Appendf(nil, "def predict(inputs):\n    return [float(sum(x)) + %d for x in inputs]\n", n),
	}
}

// updates writes messages to the stream of updates, in JSON and protobuf by turns.
func (b *streamBroker) updates(t *testing.T, all ...models.Update) {
	t.Helper()
	var messages []serving.StreamMessage
	for i, u := range all {
		m := serving.StreamMessage{Stream: "updates", Key: []byte("sum"), Value: u.AppendProtobuf(nil)}
		if i%2 == 1 {
			m.Value = u.AppendJSON(nil)
		}
		messages = append(messages, m)
	}
	if err := b.Write(t.Context(), messages); err != nil {
		t.Fatal(err)
	}
}

// acknowledged is what became of updates by their ids.
func (b *streamBroker) acknowledged(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, r := range b.read(t, "acks") {
		ack, err := models.ParseAcknowledgement(r.Value, formatOf(r))
		require.NoError(t, err)
		all[ack.UUID] = append(all[ack.UUID], ack.Outcome)
	}
	return all
}

// refusals counts the dead letters by their kinds.
func (b *streamBroker) refusals(t *testing.T, name string) map[string]int {
	t.Helper()
	kinds := map[string]int{}
	for _, d := range b.read(t, name) {
		kinds[d.Header(stream.HeaderKind)]++
	}
	return kinds
}

func modelStream(b *streamBroker, more string) string {
	return "\n[[model_stream]]\nname = 'models'\ninput = ['updates']\noutput = 'acks'\ndead_letter = 'refused'\n" +
		strings.ReplaceAll(b.lines, "patience_micros = 50000000\n", "patience_micros = 300000\n") + more
}

// sumApp is the app that asks the model, as an update. One of a file would take its links back
// at each start.
var sumApp = &models.Ensemble{Name: "sum", InputType: "doubles", SLO: 1_000_000, DefaultOutput: "-1"}

// TestModelStream deploys models by messages, beside a stream of data that they predict.
func TestModelStream(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *streamBroker) {
		b.create(t, "in", "out", "dead", "updates", "acks", "refused")
		data := streamConfig(b, "in", "out", "dead", "")
		in := start(t, t.TempDir(), data+modelStream(b, "max_record_bytes = 20000\nbatch = 4\n"), "--gateway-cache-bytes", "0")
		person := operate(t, in)
		first := adder(t, "1", 0)
		first.Apps = []string{"sum"}
		b.updates(t, models.Update{UUID: "app", Ensemble: sumApp}, models.Update{UUID: "a", Model: first})
		person.answers("sum", "[1, 2]", "3.0")

		// The model is replaced while records go on to come; wrong updates come between.
		if err := b.Write(t.Context(), asks("in", 0, 200)); err != nil {
			t.Fatal(err)
		}
		damaged, unknown, other := adder(t, "3", 3), adder(t, "4", 4), adder(t, "1", 100)
		damaged.SHA256 = strings.Repeat("ab", 32)
		unknown.Kind = "caffe"
		large := adder(t, "5", 5)
		large.Data = append(large.Data, bytes.Repeat([]byte("#"), 20000)...)
		b.updates(t,
			models.Update{UUID: "b", Model: damaged}, models.Update{UUID: "c", Model: unknown}, models.Update{UUID: "d", Model: other},
			models.Update{UUID: "e", Model: large}, models.Update{UUID: "a", Model: adder(t, "2", 2)},
			models.Update{UUID: "f", Sequence: 8, Model: adder(t, "8", 1000)}, models.Update{UUID: "g", Sequence: 7, Model: adder(t, "7", 7)},
			models.Update{UUID: "f", Sequence: 8, Model: adder(t, "8", 1000)}, models.Update{UUID: "h", Sequence: 8, Model: adder(t, "8", 1000)},
		)
		if err := b.Write(t.Context(), []serving.StreamMessage{{Stream: "updates", Key: []byte("sum"), Value: []byte("garbage")}}); err != nil {
			t.Fatal(err)
		}
		person.answers("sum", "[1, 2]", "1003.0")
		in.until("end of the updates", func() bool { return len(b.read(t, "refused")) == 6 && len(b.read(t, "acks")) == 6 })
		if got, want := b.refusals(t, "refused"), map[string]int{"wrong_checksum": 1, "unknown_kind": 1, "conflict": 1, "record_too_large": 1, "repeated_id": 1, "unreadable": 1}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("dead letters for %v", got)
		}
		if got := fmt.Sprint(b.acknowledged(t)); got != "map[a:[deployed] app:[configured] f:[deployed unchanged] g:[outdated] h:[unchanged]]" {
			t.Errorf("outcomes %s", got)
		}
		if err := b.Write(t.Context(), asks("in", 200, 300)); err != nil {
			t.Fatal(err)
		}
		in.until("results", func() bool { return len(b.read(t, "out")) == 300 })
		versions := map[string]int{}
		for _, r := range b.read(t, "out") {
			result, err := records.ParseResponse(r.Value, formatOf(r))
			require.NoError(t, err)
			i, _ := strconv.Atoi(result.UUID)
			want := map[string]float64{"1": float64(i + 1), "8": float64(i + 1001)}[result.Version]
			if got, err := strconv.ParseFloat(string(result.Output), 64); err != nil || got != want || result.Default || i >= 200 && result.Version != "8" {
				t.Fatalf("the result of %d is %+v", i, result)
			}
			versions[result.Version]++
		}
		if versions["8"] < 100 || versions["1"]+versions["8"] != 300 {
			t.Errorf("versions %v", versions)
		}

		// By a word of a person nothing is taken, until another word.
		person.do("stream", "suspend", "models", "--reason", "an audit")
		suspended := regexp.MustCompile(`(?m)^models +model .*suspended .*: an audit$`)
		open := regexp.MustCompile(`(?m)^sums +data +sum .*open$`) // once its process has been asked how it is
		in.until("the list of streams", func() bool {
			list := person.do("stream", "list")
			return suspended.MatchString(list) && open.MatchString(list)
		})
		status := func() (page struct {
			Models []models.Status `json:"model_streams"`
		}) {
			require.NoError(t, json.Unmarshal([]byte(fetched(t, in.ops("/streams"))), &page))
			return page
		}
		in.until("suspension", func() bool { return status().Models[0].Suspended != nil })
		b.updates(t, models.Update{UUID: "i", Sequence: 9, Model: adder(t, "9", 2000)})
		require.NoError(t, in.stop(os.Interrupt))
		in = start(t, in.dir, data+modelStream(b, "max_record_bytes = 20000\nbatch = 4\n"), "--gateway-cache-bytes", "0")
		person = operate(t, in)
		person.answers("sum", "[1, 2]", "1003.0")
		in.until("suspension", func() bool { return status().Models[0].Suspended != nil })
		if page := status(); page.Models[0].Suspended.Reason != "an audit" || page.Models[0].Updates != 0 {
			t.Errorf("the page says %+v", page)
		}
		person.do("stream", "resume", "models")
		person.answers("sum", "[1, 2]", "2003.0")
		if s := status().Models[0]; s.Suspended != nil || s.Condition != "" {
			t.Errorf("the page says %+v", s)
		}
		if err := in.stop(os.Interrupt); err != nil {
			t.Errorf("ended with %v:\n%s", err, in.output())
		}
	})
}
