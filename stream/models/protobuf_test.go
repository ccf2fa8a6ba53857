package models

import (
	"bytes"
	"context"
	"encoding/hex"
	"reflect"
	"sync"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/stream"
	modelspb "github.com/topsail-serving/topsail/stream/models/proto"
)

// compiled is proto/models.proto, compiled.
var compiled = sync.OnceValues(func() (protoreflect.FileDescriptor, error) {
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{"proto"}})}
	files, err := compiler.Compile(context.Background(), "models.proto")
	if err != nil {
		return nil, err
	}
	return files[0], nil
})

// empty is an empty message of the schema.
func empty(t testing.TB, name protoreflect.Name) *dynamicpb.Message {
	t.Helper()
	file, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return dynamicpb.NewMessage(file.Messages().ByName(name))
}

// google reads fields of a message of Google's reader.
type google struct{ protoreflect.Message }

func (g google) field(name protoreflect.Name) protoreflect.FieldDescriptor {
	return g.Descriptor().Fields().ByName(name)
}
func (g google) text(name protoreflect.Name) string { return g.Get(g.field(name)).String() }
func (g google) number(name protoreflect.Name) uint64 {
	return g.Get(g.field(name)).Uint()
}
func (g google) truth(name protoreflect.Name) bool { return g.Get(g.field(name)).Bool() }

func (g google) texts(name protoreflect.Name) (all []string) {
	list := g.Get(g.field(name)).List()
	for i := range list.Len() {
		all = append(all, list.Get(i).String())
	}
	return all
}

func (g google) textMap(name protoreflect.Name) (all map[string]string) {
	g.Get(g.field(name)).Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		if all == nil {
			all = map[string]string{}
		}
		all[key.String()] = value.String()
		return true
	})
	return all
}

func updateOf(m *dynamicpb.Message) Update {
	g := google{m}
	u := Update{UUID: g.text("uuid"), Sequence: g.number("sequence"), Format: stream.Protobuf}
	if f := g.field("model"); g.Has(f) {
		of := google{g.Get(f).Message()}
		u.Model = &Model{
			Name: of.text("name"), Version: of.text("version"), Description: of.text("description"), InputType: of.text("input_type"),
			InputLength: uint32(of.number("input_length")), Kind: of.text("kind"), Data: of.Get(of.field("data")).Bytes(), Location: of.text("location"),
			SHA256: of.text("sha256"), Archive: of.truth("archive"), Python: of.text("python"), Requirements: of.texts("requirements"),
			Entry: of.text("entry"), Command: of.texts("command"), Example: of.text("example"), Apps: of.texts("apps"), KeepCurrent: of.truth("keep_current"), HostedBy: of.text("hosted_by"),
		}
		u.Model.Options = of.textMap("options")
	}
	if f := g.field("ensemble"); g.Has(f) {
		of := google{g.Get(f).Message()}
		u.Ensemble = &Ensemble{
			Name: of.text("name"), Description: of.text("description"), InputType: of.text("input_type"), Models: of.texts("models"), Policy: of.text("policy"),
			SLO: of.number("latency_slo_micros"), DefaultOutput: of.text("default_output"), OutputType: of.text("output_type"),
		}
	}
	if f := g.field("policy"); g.Has(f) {
		of := google{g.Get(f).Message()}
		u.Policy = &PolicyChange{App: of.text("app"), Parameters: of.text("parameters")}
	}
	if f := g.field("stream"); g.Has(f) {
		of := google{g.Get(f).Message()}
		u.Mapping = &StreamChange{Name: of.text("name"), Apps: of.textMap("apps")}
	}
	if f := g.field("remove"); g.Has(f) {
		of := google{g.Get(f).Message()}
		u.Remove = &Removal{Model: of.text("model"), Version: of.text("version"), App: of.text("app"), Unlink: of.truth("unlink")}
	}
	return u
}

func ackOf(m *dynamicpb.Message) Acknowledgement {
	g := google{m}
	return Acknowledgement{g.text("uuid"), g.text("outcome"), g.text("model"), g.text("version"), g.text("app"), g.text("bundle")}
}

func sameUpdate(a, b Update) bool {
	if a.Model != nil && b.Model != nil {
		x, y := *a.Model, *b.Model
		if !bytes.Equal(x.Data, y.Data) {
			return false
		}
		x.Data, y.Data = nil, nil
		a.Model, b.Model = &x, &y
	}
	return reflect.DeepEqual(a, b)
}

var drawText = rapid.StringN(0, 20, 60)

func drawTexts(t *rapid.T, what string) (all []string) {
	for range rapid.IntRange(0, 3).Draw(t, what+"s") {
		all = append(all, drawText.Draw(t, what))
	}
	return all
}

// drawUpdate draws an update, which need not make sense.
func drawUpdate(t *rapid.T) Update {
	text := func(what string) string { return drawText.Draw(t, what) }
	u := Update{UUID: text("uuid"), Sequence: rapid.Uint64().Draw(t, "sequence"), Format: stream.Protobuf}
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		u.Remove = &Removal{Model: text("model"), Version: text("version"), App: text("app"), Unlink: rapid.Bool().Draw(t, "unlink")}
		return u
	case 1:
		u.Policy = &PolicyChange{App: text("app"), Parameters: rapid.SampledFrom([]string{`{}`, `{"kind":"vote"}`, `{"within_micros":5}`}).Draw(t, "parameters")}
		return u
	case 2:
		u.Mapping = &StreamChange{Name: text("name"), Apps: map[string]string{text("type"): text("app"), "": ""}}
		return u
	case 3:
		u.Ensemble = &Ensemble{
			Name: text("name"), Description: text("description"), InputType: text("input type"), Models: drawTexts(t, "model"), Policy: text("policy"),
			SLO: rapid.Uint64().Draw(t, "slo"), DefaultOutput: text("default"), OutputType: text("output type"),
		}
		return u
	}
	u.Model = &Model{
		Name: text("name"), Version: text("version"), Description: text("description"), InputType: text("input type"), InputLength: rapid.Uint32().Draw(t, "length"),
		Kind: text("kind"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"), Location: text("location"), SHA256: text("sum"), Archive: rapid.Bool().Draw(t, "archive"),
		Python: text("python"), Requirements: drawTexts(t, "requirement"), Entry: text("entry"), Command: drawTexts(t, "argument"),
		Example: rapid.SampledFrom([]string{"", `[1,2]`, `"text"`}).Draw(t, "example"), Apps: drawTexts(t, "app"), KeepCurrent: rapid.Bool().Draw(t, "keep"), HostedBy: text("host"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "options") {
		if u.Model.Options == nil {
			u.Model.Options = map[string]string{}
		}
		u.Model.Options[text("option")] = text("value")
	}
	return u
}

// TestGoogleReadsWhatWeWrite, and writes it as we do, but for the order of fields.
func TestGoogleReadsWhatWeWrite(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := drawUpdate(rt) // settings have a test of their own
		m := empty(t, "Update")
		ours := want.AppendProtobuf(nil)
		if err := proto.Unmarshal(ours, m); err != nil {
			rt.Fatal(err)
		}
		if got := updateOf(m); !sameUpdate(got, want) || len(m.GetUnknown()) > 0 {
			rt.Fatalf("%+v was read as %+v, with %x unknown", want, got, m.GetUnknown())
		}
		theirs, err := proto.Marshal(m)
		if err != nil || len(theirs) > len(ours)+16 { // an empty key or value of an option may be written or not
			rt.Fatalf("%x is written as %x, %v", ours, theirs, err)
		}
		if got, err := ParseUpdate(theirs, stream.Protobuf); err != nil || !sameUpdate(got, want) {
			rt.Fatalf("%+v came back as %+v, %v", want, got, err)
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		text := func(what string) string { return drawText.Draw(rt, what) }
		want := Acknowledgement{text("uuid"), text("outcome"), text("model"), text("version"), text("app"), text("bundle")}
		m := empty(t, "Acknowledgement")
		if err := proto.Unmarshal(want.AppendProtobuf(nil), m); err != nil || ackOf(m) != want {
			rt.Fatalf("%+v was read as %+v, %v", want, ackOf(m), err)
		}
		for _, format := range []stream.Format{stream.Protobuf, stream.JSON} {
			if got, err := ParseAcknowledgement(want.append(nil, format), format); err != nil || got != want {
				rt.Fatalf("%+v came back as %+v, %v", want, got, err)
			}
		}
	})
}

// Numbers of proto/models.proto.
const (
	updateUUID       protowire.Number = 1
	updateModel      protowire.Number = 3
	modelInputLength protowire.Number = 5
	modelOptions     protowire.Number = 14
)

func element(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// examples have every field.
func examples() (model, ensemble Update, ack Acknowledgement) {
	model = Update{UUID: "7", Sequence: 9, Model: &Model{
		Name: "m", Version: "1", Description: "d", InputType: "doubles", InputLength: 4, Kind: "python", Data: []byte{1}, Location: "l", SHA256: "s", Archive: true,
		Python: "3.11", Requirements: []string{"a", ""}, Entry: "e", Options: map[string]string{"k": "v", "a": "b"}, Command: []string{"c"}, Example: "1", Apps: []string{"a"}, KeepCurrent: true, HostedBy: "h",
	}}
	ensemble = Update{UUID: "8", Ensemble: &Ensemble{Name: "e", Description: "d", InputType: "i", Models: []string{"m", "n"}, Policy: "p", SLO: 5, DefaultOutput: "-1", OutputType: "o"}}
	return model, ensemble, Acknowledgement{"7", "deployed", "m", "1", "a", "b"}
}

// TestGoldenBytes: messages are written as they were by hand, before there was generated code.
func TestGoldenBytes(t *testing.T) {
	model, ensemble, ack := examples()
	for _, one := range []struct {
		got  []byte
		want string
	}{
		{model.AppendProtobuf(nil), "0a013710091a570a016d1201311a01642207646f75626c657328043206707974686f6e3a010142016c4a017350015a04332e3131620161" +
			"62006a016572060a016112016272060a016b1201767a0163820101318a0101619001019a010168"},
		{ensemble.AppendProtobuf(nil), "0a0138221b0a01651201641a016922016d22016e2a017030053a022d3142016f"},
		{ack.AppendProtobuf([]byte{0xff}), "ff0a013712086465706c6f7965641a016d2201312a0161320162"},
	} {
		if got := hex.EncodeToString(one.got); got != one.want {
			t.Errorf("%s, want %s", got, one.want)
		}
	}
}

// TestGoldenSettings are those of the second form of messages, which the first does not have.
func TestGoldenSettings(t *testing.T) {
	for _, one := range []struct {
		u    Update
		want string
	}{
		{Update{UUID: "7", Model: &Model{Settings: every}}, goldenSettings},
		{Update{UUID: "8", Remove: &Removal{Model: "m", Version: "1", Unlink: true}}, "0a01382a080a016d1201312001"},
		{Update{UUID: "9", Remove: &Removal{App: "a"}}, "0a01392a031a0161"},
		{Update{UUID: "9", Mapping: &StreamChange{Name: "s", Apps: map[string]string{"r": "a", "w": ""}}}, "0a01393a120a017312060a017212016112050a01771200"},
		{Update{UUID: "9", Policy: &PolicyChange{App: "a", Parameters: `{"share":0.5}`}}, "0a013932120a0161120d7b227368617265223a302e357d"},
	} {
		if got := hex.EncodeToString(one.u.AppendProtobuf(nil)); got != one.want {
			t.Errorf("%s, want %s", got, one.want)
		}
	}
}

// TestNotUTF8 is said in the same words every time.
func TestNotUTF8(t *testing.T) {
	_, err := ParseUpdate(element(updateUUID, []byte("\xff")), stream.Protobuf)
	if err == nil || err.Error() != "the message is no protobuf update: a text is not UTF-8" {
		t.Errorf("%v", err)
	}
}

func seeds() [][]byte {
	model, ensemble, ack := examples()
	model.Model.Options[""] = ""
	unknown := protowire.AppendTag(model.AppendProtobuf(nil), 99, protowire.StartGroupType)
	unknown = protowire.AppendTag(unknown, 99, protowire.EndGroupType)
	return [][]byte{
		nil, model.AppendProtobuf(nil), ensemble.AppendProtobuf(nil), ack.AppendProtobuf(nil), unknown,
		append(model.AppendProtobuf(nil), ensemble.AppendProtobuf(nil)...), append(model.AppendProtobuf(nil), model.AppendProtobuf(nil)...),
		protowire.AppendVarint(protowire.AppendTag(nil, updateModel, protowire.VarintType), 5), // another kind
		element(updateModel, element(modelOptions, []byte{0x0a})),
		element(updateModel, protowire.AppendVarint(protowire.AppendTag(nil, modelInputLength, protowire.VarintType), 1<<40)),
		element(updateUUID, []byte("\xff")), []byte("garbage"),
	}
}

// FuzzProtobufUpdate holds our reader to Google's.
func FuzzProtobufUpdate(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := empty(t, "Update")
		theirs := proto.Unmarshal(b, m)
		got := Update{Format: stream.Protobuf}
		err := got.parseProtobuf(b)
		var in modelspb.Update
		if theirs == nil && unmarshal(b, &in) == nil && in.GetModel() != nil {
			if _, wrong := settingsOf(in.GetModel()); wrong != nil {
				theirs = wrong // which a schema does not say
			}
		}
		if got.Model != nil {
			holdSettings(t, got)
			got.Model.Settings = nil // which have a test of their own
		}
		if (err == nil) != (theirs == nil) {
			t.Fatalf("%x: we say %v, and Google %v", b, err, theirs)
		}
		if err == nil && !sameUpdate(got, updateOf(m)) {
			t.Fatalf("%x is %+v, and Google reads %+v", b, got, updateOf(m))
		}
	})
}

// FuzzProtobufAcknowledgement is the same for what a job answers.
func FuzzProtobufAcknowledgement(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := empty(t, "Acknowledgement")
		theirs := proto.Unmarshal(b, m)
		got, err := ParseAcknowledgement(b, stream.Protobuf)
		if (err == nil) != (theirs == nil) {
			t.Fatalf("%x: we say %v, and Google %v", b, err, theirs)
		}
		if err == nil && got != ackOf(m) {
			t.Fatalf("%x is %+v, and Google reads %+v", b, got, ackOf(m))
		}
	})
}
