package main

import (
	"encoding/binary"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// driven is a run with so many right answers in a second, which took some processor time each.
func driven(answers int64, each time.Duration) drive {
	return drive{
		Rate: float64(answers), Answers: answers + 1, Wrong: 1, P99: time.Millisecond,
		CPU: map[string]time.Duration{"server": time.Duration(answers) * each, "wrk": time.Hour},
	}
}

func TestTensorsAreComparedWithTheBestOfEach(t *testing.T) {
	same := func(d drive) tensorRun { return tensorRun{d, d, d} }
	ours := []tensorRun{same(driven(100, 2*time.Microsecond)), same(driven(300, 2*time.Microsecond)), same(driven(120, 2*time.Microsecond))}
	fast := []tensorRun{same(driven(100, 8*time.Microsecond)), same(driven(100, 8*time.Microsecond)), same(driven(80, 8*time.Microsecond))}
	frugal := []tensorRun{same(driven(50, 4*time.Microsecond)), same(driven(900, 4*time.Microsecond)), same(driven(60, 4*time.Microsecond))}
	found := map[string]figure{}
	for _, f := range tensorFigures([]string{"Ours", "Fast", "Frugal"}, [][]tensorRun{ours, fast, frugal}) {
		found[f.What] = f
	}
	for what, want := range map[string]string{
		"Ours, 1 connection":                                                       "120/s ",
		"Ours / the fastest other, Fast, 1 connection":                             "1.50× pass", // by its median: one lucky run of the other does not count
		"Ours / the fastest other, Fast, 32 connections":                           "1.50× pass",
		"Ours / the other with the least, Frugal, 128 connections: processor time": "0.50× pass",
		"Frugal, 128 connections: processor time of an answer":                     "4.0 µs ",
		"Ours, 32 connections: wrong answers and errors":                           "1 MISS",
		"the others, 32 connections: wrong answers and errors":                     "1 ",
	} {
		if f, is := found[what]; !is || f.Value()+" "+f.Verdict() != want {
			t.Errorf("%s: got %q, want %q", what, f.Value()+" "+f.Verdict(), want)
		}
	}
	if samples := found["Ours / the fastest other, Fast, 1 connection"].Samples; !slices.Equal(samples, []float64{1, 3, 1.5}) {
		t.Errorf("ratios are not of the same rounds: %v", samples)
	}
}

func TestTheRightAnswerIsInTheImage(t *testing.T) {
	raw, want := tensorImage(), strings.Split(rightTensor, ",")
	for i, at := range []int{1, 224*224 + 100*224 + 7, pixels - 1} { // as in tensors.py
		x := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*at:]))
		if text := strconv.FormatFloat(float64(x), 'g', -1, 64); text != want[i] {
			t.Errorf("value %d of the image is %s, want %s", at, text, want[i])
		}
	}
	if len(raw) != 4*pixels {
		t.Errorf("the image has %d bytes", len(raw))
	}
}

func TestAnAnswerIsJudged(t *testing.T) {
	answer := `{"outputs":[{"data":[` + rightTensor + `]}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		length, _ := strconv.Atoi(r.Header.Get("Inference-Header-Content-Length")) // raw bodies have none
		if err != nil || len(body) != length+4*pixels {
			t.Errorf("%d bytes of body with a header of %d, %v", len(body), length, err)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	for _, request := range []*request{inferTensor(), rawTensor()} {
		asked := target{url: server.URL, request: request}
		if err := asked.answersRight(t.Context()); err != nil {
			t.Error(err)
		}
	}
	answer = `{"error":"no"}`
	if err := (&target{url: server.URL, request: rawTensor()}).answersRight(t.Context()); err == nil || !strings.Contains(err.Error(), answer) {
		t.Errorf("got %v for a wrong answer", err)
	}
}
