package rpc

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
)

// claims are bodies of a few bytes that promise far more.
func claims() map[string]Frame {
	u32 := func(numbers ...uint32) (b []byte) {
		for _, n := range numbers {
			b = appendU32(b, n)
		}
		return b
	}
	predict := func(entry ...byte) Frame {
		b := AppendPredictHead(nil, PredictHead{Batch: 1, Count: 1})
		return Frame{Kind: KindPredict, Body: append(appendU32(b, uint32(len(entry))), entry...)}
	}
	reply := func(entry ...byte) Frame {
		b := AppendReplyHead(nil, ReplyHead{Batch: 1, Count: 1})
		entry = append(make([]byte, 8), entry...)
		return Frame{Kind: KindReply, Body: append(appendU32(b, uint32(len(entry))), entry...)}
	}
	metric := func(entry ...byte) Frame {
		return Frame{Kind: KindMetrics, Body: append(u32(1, uint32(len(entry))), entry...)}
	}
	const huge = 1<<31 - 1
	return map[string]Frame{
		"predict of many":        {Kind: KindPredict, Body: append(u32(1, 0, 1, MaxBatch), 0)},
		"predict of too many":    {Kind: KindPredict, Body: u32(1, 0, 1, MaxBatch+1)},
		"predict of none":        {Kind: KindPredict, Body: u32(1, 0, 1, 0)},
		"entry":                  {Kind: KindPredict, Body: u32(1, 0, 1, 1, huge)},
		"entry above 2 GiB":      {Kind: KindPredict, Body: u32(1, 0, 1, 1, 1<<32-1)},
		"many values":            predict(0, 0, 0, 0, 0xff, 0xff),
		"long data":              predict(0, 0, 0, 0, 1, 0, 16, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f),
		"long vector":            predict(0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f),
		"large shape":            reply(1, 0, 5, 2, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0),
		"shape beyond 64 bits":   reply(append([]byte{1, 0, 5, 8, 0, 0}, bytes.Repeat([]byte{0xff}, 36)...)...),
		"shape that wraps to 0":  reply(1, 0, 1, 4, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0),
		"rows of nothing":        reply(1, 0, 1, 2, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0),
		"rows of rows of nought": reply(1, 0, 5, 3, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"many answers":           {Kind: KindReply, Body: u32(1, 0, 0, 0, 0, MaxBatch)},
		"too many answers":       {Kind: KindReply, Body: u32(1, 0, 0, 0, 0, 1<<32-1)},
		"many announcements":     {Kind: KindAnnounce, Body: u32(1<<32-1, 15, 1)},
		"many feedbacks":         {Kind: KindFeedback, Body: u32(1, MaxBatch, 4, 0)},
		"too many metrics":       {Kind: KindMetrics, Body: append(u32(maxEntries+1, 12), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		"many labels":            metric(1, 0, 0xff, 0xff),
		"labels":                 metric(1, 0, maxMetricLabels, 0, 0, 0, 0),
		"many buckets":           metric(append(append([]byte{3, 0, 0, 0}, make([]byte, 16)...), 0xff, 0xff)...),
		"long field":             {Kind: KindHello, Body: append(AppendHello(nil, testHello), 1, 0xff, 0xff, 0xff, 0x7f)},
		"long reason":            {Kind: KindBye, Body: []byte{0xff, 0xff}},
	}
}

// allocated is the memory that do allocates, in bytes.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAClaimedSizeAllocatesNothing(t *testing.T) {
	const most = 64 << 10
	for name, f := range claims() {
		var err error
		got := allocated(func() { _, err = decode(f) })
		if got > most {
			t.Errorf("%s: %d bytes of body make %d bytes of memory", name, len(f.Body), got)
		}
		if err == nil {
			t.Errorf("%s: was taken", name)
			continue
		}
		checkRefusal(t, f, err)
	}
	for _, raw := range []uint32{1<<31 - 1, MaxFrame, MaxFrame + 1, 1<<32 - 1} {
		body := append(appendU32(nil, raw), make([]byte, 16)...)
		var err error
		got := allocated(func() { _, err = decompress(nil, body, MaxFrame) })
		if _, ok := errors.AsType[*ProtocolError](err); !ok || got > most {
			t.Errorf("compressed body that claims %d: %d bytes of memory, %v", raw, got, err)
		}
	}
	for _, size := range []uint32{MaxFrame, MaxFrame + 1, 1 << 31, 1<<32 - 1} {
		stream := append(appendU32(nil, size), 3, 0, 0, 0, 1, 2, 3)
		r := newReader(bytes.NewReader(stream), MaxFrame, false)
		var err error
		got := allocated(func() { _, err = r.next() })
		if err == nil || got > most {
			t.Errorf("header that claims %d: %d bytes of memory, %v", size, got, err)
		}
	}
	stream := append(appendU32(nil, MaxFrame), make([]byte, 2*readBuffer)...)
	r := newReader(bytes.NewReader(stream), MaxFrame, false)
	if got := allocated(func() { _, _ = r.next() }); got > (trusted+1)*readBuffer {
		t.Errorf("%d bytes of a frame of %d make %d bytes of memory", len(stream), MaxFrame, got)
	}
}
