package stored

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

func TestReply(t *testing.T) {
	for _, want := range []serving.Reply{
		{Fingerprint: "f"},
		{Fingerprint: "f", Status: 201, Header: map[string]string{"ETag": `"1"`}, Body: []byte("{\"a\":\"\xff\x00\"}")},
		{Status: 200, Body: make([]byte, serving.MaxReply)},
	} {
		text, err := EncodeReply(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeReply(text); err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("got %.200v and error %v, want %.200v", got, err, want)
		}
	}
	for _, large := range []serving.Reply{
		{Body: make([]byte, serving.MaxReply+1)},
		{Header: map[string]string{"X": "y"}, Body: make([]byte, serving.MaxReply-1)},
	} {
		if text, err := EncodeReply(large); err == nil || text != nil {
			t.Errorf("encoded a body of %d bytes and a header with %d lines", len(large.Body), len(large.Header))
		}
	}
}

// FuzzDecodeReply gives any bytes: what is read is written and read again as the same.
func FuzzDecodeReply(f *testing.F) {
	f.Add([]byte(`{"fingerprint":"f","status":201,"header":{"ETag":"1"},"body":"e30="}`))
	f.Add([]byte(`{"fingerprint":"f","claim":"c"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := DecodeReply(text)
		if err != nil {
			return
		}
		stored, err := EncodeReply(*first)
		if err != nil {
			return // too large
		}
		again, err := DecodeReply(stored)
		if err != nil || again.Fingerprint != first.Fingerprint || again.Status != first.Status ||
			!bytes.Equal(again.Body, first.Body) || len(again.Header) != len(first.Header) {
			t.Fatalf("got %+v and error %v, want %+v", again, err, first)
		}
	})
}
