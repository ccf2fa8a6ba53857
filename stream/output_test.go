package stream

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

// TestCarriedHeaders: none of ours, not too many, in their order, and the trace context before all others.
func TestCarriedHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []serving.StreamHeader
		for i := range rapid.IntRange(0, 200).Draw(t, "headers") {
			name := rapid.SampledFrom([]string{"a", "b", "topsail-kind", "Topsail-App", "content-type", "Content-Type", "tracestate"}).Draw(t, "name")
			all = append(all, serving.StreamHeader{Name: name, Value: fmt.Appendf(nil, "%d%s", i, strings.Repeat("x", rapid.IntRange(0, 400).Draw(t, "length")))})
		}
		all = append(all, serving.StreamHeader{Name: "traceparent", Value: []byte("00-1-2-01")})
		carried, bytes, traced, last := Carried(all), 0, false, map[bool]int{true: -1, false: -1}
		if len(carried) > mostCarried {
			t.Fatalf("%d headers are carried", len(carried))
		}
		for i, h := range carried {
			bytes += len(h.Name) + len(h.Value)
			traced = traced || h.Name == "traceparent"
			if lower := strings.ToLower(h.Name); lower == HeaderContentType || strings.HasPrefix(lower, ours) {
				t.Fatalf("%s is carried", h.Name)
			}
			if isTrace(h.Name) && i > 0 && !isTrace(carried[i-1].Name) {
				t.Fatalf("%s comes behind %s", h.Name, carried[i-1].Name)
			}
			var number int
			if h.Name != "traceparent" {
				fmt.Sscanf(string(h.Value), "%d", &number)
				if number <= last[isTrace(h.Name)] {
					t.Fatal("the order is another one")
				}
				last[isTrace(h.Name)] = number
			}
		}
		states := 0
		for _, h := range all {
			if h.Name == "tracestate" {
				states++
			}
		}
		if bytes > mostCarriedBytes || !traced && states < 15 {
			t.Fatalf("%d bytes are carried; the trace is: %v", bytes, traced)
		}
	})
}
