package mapping

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/topsail-serving/topsail/test/require"
)

const orderProto = "testdata/order.proto"

// orderMessage is an order in protobuf, of its JSON.
func orderMessage(t testing.TB, text string) []byte {
	t.Helper()
	c := orderCodec(t).(protoCodec)
	m := dynamicpb.NewMessage(c.message)
	require.NoError(t, protojson.Unmarshal([]byte(text), m))
	value, err := proto.Marshal(m)
	require.NoError(t, err)
	return value
}

func orderCodec(t testing.TB) codec {
	t.Helper()
	c, _, err := fileCodec(Protobuf, orderProto, "shop.v1.Order")
	require.NoError(t, err)
	return c
}

const anOrder = `{"id": "7", "customer": {"name": "ann", "age": "41"}, "items": [{"price": 1.5, "features": [1, 2]}, {}], "state": "PAID",
	"photo": "aGk=", "counts": {"a": 1}, "at": "2026-05-04T03:02:01Z", "discount": 0.5, "number": "18446744073709551615"}`

// TestProtobuf: fields are found by their names, unset ones are missing or have their defaults.
func TestProtobuf(t *testing.T) {
	c := orderCodec(t)
	tree, err := c.decode(orderMessage(t, anOrder))
	require.NoError(t, err)
	got, err := appendJSON(nil, tree)
	want := `{"at":"2026-05-04T03:02:01Z","counts":{"a":1},"customer":{"age":41,"name":"ann"},"discount":0.5,"id":"7",` +
		`"items":[{"features":[1,2],"price":1.5},{"features":[],"price":0}],"number":18446744073709551615,"photo":"aGk=","returning":false,"state":"PAID"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	empty, err := c.decode(nil)
	if text, _ := appendJSON(nil, empty); err != nil || string(text) != `{"counts":{},"id":"","items":[],"number":0,"photo":"","returning":false,"state":"NEW"}` {
		t.Errorf("%s, %v", text, err)
	}
	twice := []byte("2\x05\n\x01a\b\x10") // a map whose entry has its key twice, once as a number
	if _, err := c.decode(twice); err == nil || !strings.Contains(err.Error(), "a map has a wrong entry") {
		t.Errorf("a wrong entry: %v", err)
	}
	if _, err := c.decode([]byte("garbage")); err == nil || !strings.Contains(err.Error(), "not a message shop.v1.Order") {
		t.Errorf("garbage: %v", err)
	}
}

// TestDescriptorSets are read as .proto files are.
func TestDescriptorSets(t *testing.T) {
	message := orderCodec(t).(protoCodec).message
	set := &descriptorpb.FileDescriptorSet{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	add(message.ParentFile())
	text, err := proto.Marshal(set)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "orders.pb")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	c, _, err := fileCodec(Protobuf, file, "shop.v1.Order")
	require.NoError(t, err)
	tree, err := c.decode(orderMessage(t, `{"id": "7"}`))
	if err != nil || tree.(map[string]any)["id"] != "7" {
		t.Errorf("%v, %v", tree, err)
	}
	for _, wrong := range []struct{ file, message, want string }{
		{file, "shop.v1.Other", "give its full name"}, {file, "shop.v1.Order.State", "is not a message"}, {orderProto, "Order", "give its full name"},
		{"path_test.go", "a.B", "not a descriptor set"}, {"nothing.pb", "a.B", "no such file"},
	} {
		if _, _, err := fileCodec(Protobuf, wrong.file, wrong.message); err == nil || !strings.Contains(err.Error(), wrong.want) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

// TestManyEmptyMessages take little memory: two bytes stand for a message.
func TestManyEmptyMessages(t *testing.T) {
	value := bytes.Repeat([]byte{3<<3 | 2, 0}, 1<<20)
	if _, err := orderCodec(t).decode(value); !errors.Is(err, errTooMany) {
		t.Errorf("%v", err)
	}
}

func protoText(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(orderProto)
	require.NoError(t, err)
	return string(text)
}

func FuzzProtobuf(f *testing.F) {
	f.Add(orderMessage(f, anOrder))
	f.Add(bytes.Repeat([]byte{3<<3 | 2, 0}, 100))
	c := orderCodec(f)
	f.Fuzz(func(t *testing.T, value []byte) { again(t, c, value) })
}
