package mapping

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func write(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestBytesAndText(t *testing.T) {
	read := func(format Format, value string, kind serving.InputType) (serving.Input, error) {
		m, err := New(Config{Format: format, ID: "header:id"}, nil)
		require.NoError(t, err)
		r, err := m.Read(t.Context(), &serving.StreamRecord{Stream: "in", Place: "0/1", Value: []byte(value), Headers: []serving.StreamHeader{{Name: "id", Value: []byte("x")}}})
		if err != nil {
			return serving.Input{}, err
		}
		if r.ID != "x" {
			t.Errorf("the id is %q", r.ID)
		}
		return r.Input(kind, nil)
	}
	for _, one := range []struct {
		format Format
		value  string
		kind   serving.InputType
		want   string
		wrong  string
	}{
		{Bytes, "\xff\x00", serving.Bytes, "\xff\x00", ""}, {Bytes, "text", serving.Strings, "text", ""}, {Bytes, "12345678", serving.Doubles, "12345678", ""},
		{Bytes, "123", serving.Doubles, "", "it has 3 bytes"}, {Bytes, "", serving.Bytes, "", "no value"}, {Bytes, "\xff", serving.Strings, "", "UTF-8"},
		{Text, "hello", serving.Strings, "hello", ""}, {Text, "", serving.Strings, "", ""}, {Text, "\xff", serving.Strings, "", "not a text"}, {Text, "1", serving.Doubles, "", "or a list of numbers"},
	} {
		in, err := read(one.format, one.value, one.kind)
		if one.wrong == "" && (err != nil || string(in.Data) != one.want) || one.wrong != "" && (err == nil || !strings.Contains(err.Error(), one.wrong)) {
			t.Errorf("%v %q as %v: %q, %v", one.format, one.value, one.kind, in.Data, err)
		}
	}
}

// again writes what is read, and reads it to the same.
func again(t *testing.T, c codec, value []byte) {
	tree, err := c.decode(value)
	if err != nil {
		return
	}
	first, err := appendJSON(nil, tree)
	if err != nil {
		t.Fatalf("%v cannot be JSON: %v", tree, err)
	}
	written, err := c.encode(tree)
	if err != nil {
		return // such as a time that JSON cannot say, or a decimal with more digits than its schema says
	}
	tree, err = c.decode(written)
	if err != nil {
		t.Fatalf("what was written cannot be read: %v", err)
	}
	if second, err := appendJSON(nil, tree); err != nil || !bytes.Equal(first, second) {
		t.Fatalf("%s became %s, %v", first, second, err)
	}
}
