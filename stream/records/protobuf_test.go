package records

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/stream"
)

// schema is proto/serving.proto, compiled.
var schema = sync.OnceValues(func() (protoreflect.FileDescriptor, error) {
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{"proto"}})}
	files, err := compiler.Compile(context.Background(), "serving.proto")
	if err != nil {
		return nil, err
	}
	return files[0], nil
})

// message is an empty message of the schema.
func message(t testing.TB, name protoreflect.Name) *dynamicpb.Message {
	t.Helper()
	file, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	return dynamicpb.NewMessage(file.Messages().ByName(name))
}

func fieldOf(m *dynamicpb.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(name)
}

func text(m *dynamicpb.Message, name protoreflect.Name) string {
	return m.Get(fieldOf(m, name)).String()
}

// requestOf is a message of Google's reader as ours reads it.
func requestOf(m *dynamicpb.Message) Request {
	var apps []string
	for list, i := m.Get(fieldOf(m, "app")).List(), 0; i < list.Len(); i++ {
		if app := list.Get(i).String(); app != "" {
			apps = append(apps, app)
		}
	}
	return Request{
		UUID: text(m, "uuid"), Apps: apps, User: text(m, "user"), Context: text(m, "context"), Key: text(m, "key"),
		Data: m.Get(fieldOf(m, "data")).Bytes(), Format: stream.Protobuf,
	}
}

func responseOf(m *dynamicpb.Message) Response {
	r := Response{
		UUID: text(m, "uuid"), QueryID: m.Get(fieldOf(m, "query_id")).Int(), Output: m.Get(fieldOf(m, "data")).Bytes(),
		Default: m.Get(fieldOf(m, "is_default")).Bool(), Explanation: text(m, "explanation"), Model: text(m, "model"), Version: text(m, "version"),
		App: text(m, "app"), Took: microseconds(uint64(m.Get(fieldOf(m, "duration_micros")).Int())),
	}
	if f := fieldOf(m, "confidence"); m.Has(f) {
		x := m.Get(f).Float()
		r.Confidence = &x
	}
	list := m.Get(fieldOf(m, "qualifiers")).List()
	for i := range list.Len() {
		q := list.Get(i).Message()
		names := q.Descriptor().Fields()
		r.Qualifiers = append(r.Qualifiers, Qualifier{q.Get(names.ByName("key")).String(), q.Get(names.ByName("value")).String()})
	}
	list = m.Get(fieldOf(m, "missing")).List()
	for i := range list.Len() {
		r.Missing = append(r.Missing, list.Get(i).String())
	}
	return r
}

// sameBits has NaN equal itself.
func sameBits(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return math.Float64bits(*a) == math.Float64bits(*b)
}

func sameResponse(a, b Response) bool {
	same := sameBits(a.Confidence, b.Confidence) && bytes.Equal(a.Output, b.Output)
	a.Confidence, b.Confidence, a.Output, b.Output = nil, nil, nil, nil
	return same && reflect.DeepEqual(a, b)
}

func sameRequest(a, b Request) bool {
	same := bytes.Equal(a.Data, b.Data)
	a.Data, b.Data = nil, nil
	return same && reflect.DeepEqual(a, b)
}

var drawText = rapid.StringN(0, 20, 60)

func drawRequest(t *rapid.T) Request {
	var apps []string
	for range rapid.IntRange(0, 3).Draw(t, "apps") {
		apps = append(apps, rapid.StringN(1, 20, 60).Draw(t, "app"))
	}
	return Request{
		UUID: drawText.Draw(t, "uuid"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"), Apps: apps,
		User: drawText.Draw(t, "user"), Context: drawText.Draw(t, "context"), Key: drawText.Draw(t, "key"), Format: stream.Protobuf,
	}
}

func drawResponse(t *rapid.T) Response {
	r := Response{
		UUID: drawText.Draw(t, "uuid"), QueryID: rapid.Int64().Draw(t, "query id"), Output: rapid.SliceOf(rapid.Byte()).Draw(t, "output"),
		Default: rapid.Bool().Draw(t, "default"), Explanation: drawText.Draw(t, "explanation"),
		Model: drawText.Draw(t, "model"), Version: drawText.Draw(t, "version"),
		App: drawText.Draw(t, "app"), Took: microseconds(uint64(rapid.Int64Min(0).Draw(t, "took"))),
	}
	if rapid.Bool().Draw(t, "sure") {
		x := rapid.Float64().Draw(t, "confidence")
		r.Confidence = &x
	}
	for range rapid.IntRange(0, 3).Draw(t, "qualifiers") {
		r.Qualifiers = append(r.Qualifiers, Qualifier{drawText.Draw(t, "key"), drawText.Draw(t, "value")})
	}
	for range rapid.IntRange(0, 3).Draw(t, "missing") {
		r.Missing = append(r.Missing, drawText.Draw(t, "model id"))
	}
	return r
}

// TestGoogleReadsWhatWeWrite, and writes it as we do, but for the order of fields.
func TestGoogleReadsWhatWeWrite(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := drawRequest(rt)
		m := message(t, "ServingRequest")
		ours := want.AppendProtobuf(nil)
		if err := proto.Unmarshal(ours, m); err != nil {
			rt.Fatal(err)
		}
		if got := requestOf(m); !sameRequest(got, want) || len(m.GetUnknown()) > 0 {
			rt.Fatalf("%+v was read as %+v, with %x unknown", want, got, m.GetUnknown())
		}
		theirs, err := proto.Marshal(m)
		if err != nil || len(theirs) != len(ours) {
			rt.Fatalf("%x is written as %x, %v", ours, theirs, err)
		}
		if got, err := ParseRequest(theirs, stream.Protobuf); err != nil || !sameRequest(got, want) {
			rt.Fatalf("%+v came back as %+v, %v", want, got, err)
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		want := drawResponse(rt)
		m := message(t, "ServingResponse")
		ours := want.AppendProtobuf(nil)
		if err := proto.Unmarshal(ours, m); err != nil {
			rt.Fatal(err)
		}
		if got := responseOf(m); !sameResponse(got, want) || len(m.GetUnknown()) > 0 {
			rt.Fatalf("%+v was read as %+v, with %x unknown", want, got, m.GetUnknown())
		}
		theirs, err := proto.Marshal(m)
		if err != nil || len(theirs) != len(ours) {
			rt.Fatalf("%x is written as %x, %v", ours, theirs, err)
		}
		if got, err := ParseResponse(theirs, stream.Protobuf); err != nil || !sameResponse(got, want) {
			rt.Fatalf("%+v came back as %+v, %v", want, got, err)
		}
	})
}

func seeds() [][]byte {
	x := 0.25
	request := Request{UUID: "7", Data: []byte{1, 2}, Apps: []string{"wine"}, User: "ann", Context: "c", Key: "k"}
	response := Response{UUID: "7", QueryID: 9, Output: []byte("1.5"), Confidence: &x, Default: true, Explanation: "late", Model: "m", Version: "1", App: "wine", Took: time.Second, Qualifiers: []Qualifier{{"a", "b"}, {}}, Missing: []string{"m:1", ""}}
	unknown := protowire.AppendTag(request.AppendProtobuf(nil), 99, protowire.StartGroupType)
	unknown = protowire.AppendTag(unknown, 98, protowire.Fixed32Type)
	unknown = protowire.AppendFixed32(unknown, 1)
	unknown = protowire.AppendTag(unknown, 99, protowire.EndGroupType)
	return [][]byte{
		nil, request.AppendProtobuf(nil), response.AppendProtobuf(nil), unknown,
		protowire.AppendVarint(protowire.AppendTag(nil, requestUUID, protowire.VarintType), 5),            // another kind
		appendElement(appendElement(nil, requestUUID, "first"), requestUUID, "last"),                      // twice
		appendElement(nil, requestUUID, "\xff"),                                                           // no text
		protowire.AppendVarint(protowire.AppendTag(nil, requestData, protowire.BytesType), 1<<40),         // longer than all
		protowire.AppendVarint(protowire.AppendTag(nil, 1<<29, protowire.VarintType), 1),                  // no such number
		protowire.AppendTag(nil, 99, protowire.EndGroupType),                                              // of no group
		appendElement(nil, responseQualifiers, appendElement([]byte{0x0a}, qualifierKey, "a nested one")), // broken inside
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, []byte("{\"uuid\": 1}"), []byte("garbage"),
	}
}

// FuzzProtobufRequest holds our reader to Google's.
func FuzzProtobufRequest(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := message(t, "ServingRequest")
		theirs := proto.Unmarshal(b, m)
		got, err := ParseRequest(b, stream.Protobuf)
		if err != nil && theirs == nil && strings.Contains(err.Error(), fmt.Sprintf("at most %d", maxName)) {
			return // our own rule
		}
		if (err == nil) != (theirs == nil) {
			t.Fatalf("%x: we say %v, and Google %v", b, err, theirs)
		}
		if err == nil && !sameRequest(got, requestOf(m)) {
			t.Fatalf("%x is %+v, and Google reads %+v", b, got, requestOf(m))
		}
	})
}

// FuzzProtobufResponse is the same for results.
func FuzzProtobufResponse(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := message(t, "ServingResponse")
		theirs := proto.Unmarshal(b, m)
		got, err := ParseResponse(b, stream.Protobuf)
		if (err == nil) != (theirs == nil) {
			t.Fatalf("%x: we say %v, and Google %v", b, err, theirs)
		}
		if err == nil && !sameResponse(got, responseOf(m)) {
			t.Fatalf("%x is %+v, and Google reads %+v", b, got, responseOf(m))
		}
	})
}

// BenchmarkCodec reads a request and writes its response, as a job does for each record.
func BenchmarkCodec(b *testing.B) {
	request := Request{UUID: "123456", Data: make([]byte, 32), Apps: []string{"wine"}, User: "ann", Key: "key-17"}
	message, confidence := request.AppendProtobuf(nil), 0.25
	b.ReportAllocs()
	for b.Loop() {
		r, err := ParseRequest(message, stream.Protobuf)
		if err != nil {
			b.Fatal(err)
		}
		response := Response{
			UUID: r.UUID, QueryID: 123456789, Output: r.Data[:4], Model: "wine", Version: "1", Confidence: &confidence, Qualifiers: []Qualifier{{"class", "red"}},
		}
		if len(response.AppendProtobuf(nil)) == 0 {
			b.Fatal("there is no response")
		}
	}
}
