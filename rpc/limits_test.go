package rpc

import (
	"bytes"
	"testing"
)

// Frames that are sound but for one thing of which they have too many.
func TestWhatHasABoundIsTakenUpToIt(t *testing.T) {
	u16 := func(n int) []byte { return appendU16(nil, uint16(n)) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	entries := func(n int, head, entry []byte) []byte {
		one := append(appendU32(nil, uint32(len(entry))), entry...)
		return join(head, appendU32(nil, uint32(n)), bytes.Repeat(one, n))
	}
	predictHead, replyHead := make([]byte, 12), make([]byte, 20)
	for name, tt := range map[string]struct {
		kind Kind
		most int
		body func(n int) []byte
	}{
		"loads": {KindLoad, maxEntries, func(n int) []byte {
			entry := append(append(make([]byte, 8), 1, 'm'), 1, '1')
			return entries(n, nil, entry)
		}},
		"announcements": {KindAnnounce, maxEntries, func(n int) []byte { return entries(n, nil, make([]byte, 15)) }},
		"inputs":        {KindPredict, MaxBatch, func(n int) []byte { return entries(n, predictHead, make([]byte, 6)) }},
		"answers":       {KindReply, maxEntries, func(n int) []byte { return entries(n, replyHead, make([]byte, 10)) }},
		"feedbacks":     {KindFeedback, maxEntries, func(n int) []byte { return entries(n, make([]byte, 4), make([]byte, 4)) }},
		"metrics":       {KindMetrics, maxEntries, func(n int) []byte { return entries(n, nil, join([]byte{1, 0, 0, 0}, make([]byte, 8))) }},
		"labels": {KindMetrics, maxMetricLabels, func(n int) []byte {
			return entries(1, nil, join([]byte{1, 0}, u16(n), make([]byte, 3*n), make([]byte, 8)))
		}},
		"buckets": {KindMetrics, maxMetricBuckets, func(n int) []byte {
			return entries(1, nil, join([]byte{3, 0, 0, 0}, make([]byte, 16), u16(n), make([]byte, 16*n)))
		}},
		"dimensions": {KindFeedback, maxDims, func(n int) []byte {
			value := join([]byte{1, 0, 1, byte(n), 0, 0}, bytes.Repeat([]byte{1, 0, 0, 0}, n), []byte{1, 0, 0, 0, 7})
			return entries(1, make([]byte, 4), join(value, value))
		}},
		"empty rows": {KindFeedback, maxEmptyRows, func(n int) []byte {
			value := join([]byte{1, 0, 5, 2, 0, 0}, appendU32(nil, uint32(n)), make([]byte, 8))
			return entries(1, make([]byte, 4), join(value, value))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := decode(Frame{Kind: tt.kind, Body: tt.body(tt.most)}); err != nil {
				t.Errorf("%d: %v", tt.most, err)
			}
			f := Frame{Kind: tt.kind, Body: tt.body(tt.most + 1)}
			if _, err := decode(f); err == nil {
				t.Errorf("%d were taken", tt.most+1)
			} else if tt.most < maxEntries { // checkRefusal prints the body
				checkRefusal(t, f, err)
			}
		})
	}
}
