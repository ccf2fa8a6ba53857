package obs

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"
)

// page is what a handler serves to those who accept families.
func page(r *Registry) []byte {
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.Header.Set("Accept", FamiliesType)
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, request)
	return answer.Body.Bytes()
}

func TestFamiliesAreReadAsTheyWereGathered(t *testing.T) {
	r := NewRegistry()
	r.Counters("asked_total", "Questions.", "app").WithLabelValues("a\"b\n").Add(3)
	r.Histograms("took_seconds", "Time.", Seconds()).WithLabelValues().Observe(0.003)
	gathered, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadFamilies(bytes.NewReader(page(r)), 1<<20)
	if err != nil || len(read) < len(gathered) {
		t.Fatalf("%d families of %d, %v", len(read), len(gathered), err)
	}
	seen := map[string]*Family{}
	for _, f := range read {
		seen[f.GetName()] = f
	}
	for _, name := range []string{"asked_total", "took_seconds"} {
		for _, f := range gathered {
			if f.GetName() == name && f.GetMetric()[0].String() != seen[name].GetMetric()[0].String() {
				t.Errorf("%s: %v, was %v", name, seen[name], f)
			}
		}
	}
	if got := seen["asked_total"].GetMetric()[0].GetLabel()[0].GetValue(); got != "a\"b\n" {
		t.Errorf("label %q", got)
	}
}

func TestFamiliesAreBounded(t *testing.T) {
	whole := page(NewRegistry())
	if _, err := ReadFamilies(bytes.NewReader(whole), int64(len(whole))); err != nil {
		t.Errorf("of the size allowed: %v", err)
	}
	if _, err := ReadFamilies(bytes.NewReader(whole), int64(len(whole)-1)); err == nil {
		t.Error("what is larger than allowed was read")
	}
	if _, err := ReadFamilies(bytes.NewReader(whole[:len(whole)-1]), 1<<20); err == nil {
		t.Error("half a page was read")
	}
	if _, err := ReadFamilies(strings.NewReader("# HELP some text\n"), 1<<20); err == nil {
		t.Error("text was read")
	}
}

func FuzzReadFamilies(f *testing.F) {
	f.Add(page(NewRegistry()))
	f.Add([]byte("# HELP x\n"))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, body []byte) {
		families, err := ReadFamilies(bytes.NewReader(body), 1<<16)
		if err != nil && families != nil {
			t.Error("families and an error")
		}
		for _, f := range families {
			if f.GetName() == "" {
				t.Error("a metric without a name")
			}
		}
		if err == nil && len(body) > 1<<16 {
			t.Errorf("%d bytes were read", len(body))
		}
	})
}
