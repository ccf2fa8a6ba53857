package serving

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestBounded leaves out no more than has to go, and never writes to what it is given.
func TestBounded(t *testing.T) {
	output := json.RawMessage(`"` + strings.Repeat("x", MaxRecordedOutput-2) + `"`)
	full := func(input, asked, user int) *Record {
		r := &Record{QueryID: 7, Input: make([]byte, input), User: strings.Repeat("u", user), Output: output}
		for range asked {
			r.Asked = append(r.Asked, RecordedAsk{ModelID: ModelID{"m", "1"}, Probability: 0.5, Output: output})
		}
		return r
	}
	for _, test := range []struct {
		input, asked, user     int
		keeps, outputs, refuse bool
	}{
		{MaxRecordedInput, 4, 256, true, true, false},
		{MaxRecordedInput, 13, 256, false, true, false},
		{MaxRecordedInput, 20, 256, false, false, false},
		{0, 20, 256, false, false, false},
		{0, 1000, 256, false, false, true},
		{0, 0, MaxRecord, false, false, true},
	} {
		r := full(test.input, test.asked, test.user)
		got, err := r.Bounded()
		if !reflect.DeepEqual(r, full(test.input, test.asked, test.user)) {
			t.Errorf("%+v: the record was written to", test)
		}
		if test.refuse {
			if err == nil || got != nil || !strings.Contains(err.Error(), "query 7") {
				t.Errorf("%+v: got error %v", test, err)
			}
			continue
		}
		want := full(test.input, test.asked, test.user)
		if !test.keeps {
			want.Input = nil
		}
		for i := range want.Asked {
			if !test.outputs {
				want.Asked[i].Output = nil
			}
		}
		if err != nil || !reflect.DeepEqual(got, want) || got.size() > MaxRecord {
			t.Errorf("%+v: got %d bytes and error %v", test, got.size(), err)
		}
	}
}

func TestRecordSlot(t *testing.T) {
	for id, want := range map[int64]int{0: 0, 1: 1, MaxRecords: 0, 1<<53 - 1: MaxRecords - 1, -1: MaxRecords - 1} {
		if got := RecordSlot(id); got != want {
			t.Errorf("query %d has place %d, want %d", id, got, want)
		}
	}
}

// TestInputHash is the same at every gateway and in every release: records are found by it.
func TestInputHash(t *testing.T) {
	h := HashInput(Input{Type: Doubles, Data: []byte{1, 2}})
	text, err := h.MarshalText()
	if want := "80bdc7d346010f522647e10c74c931cf"; err != nil || string(text) != want {
		t.Errorf("got %s and error %v, want %s", text, err, want)
	}
	if h == HashInput(Input{Type: Floats, Data: []byte{1, 2}}) {
		t.Error("the type does not matter")
	}
	var again InputHash
	if err := again.UnmarshalText(text); err != nil || again != h {
		t.Errorf("got %v and error %v", again, err)
	}
	for _, text := range []string{"", "00", strings.Repeat("g", 32), strings.Repeat("0", 33)} {
		if again.UnmarshalText([]byte(text)) == nil {
			t.Errorf("took %q", text)
		}
	}
}
