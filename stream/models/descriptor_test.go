package models

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/test/require"
)

// described is a ModelDescriptor as FLIP-23's examples write it: name, description, dataType, modeltype, data or location.
func described(dataType string, kind uint64, data []byte, location string) serving.StreamMessage {
	var b []byte
	text := func(number protowire.Number, value string) {
		if value != "" {
			b = protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), value)
		}
	}
	text(1, "winequality")
	text(2, "generated from R")
	text(3, dataType)
	if kind != 0 { // as proto3 has it
		b = protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.VarintType), kind)
	}
	text(5, string(data))
	text(6, location)
	return serving.StreamMessage{Stream: "in", Key: []byte(dataType), Value: b}
}

// TestModelDescriptors become versions of the models of their types of data.
func TestModelDescriptors(t *testing.T) {
	saved := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(saved, "model", "variables"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(saved, "model", "saved_model.pb"), []byte("graph"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(saved, "model", "variables", "variables.index"), []byte("weights"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.app("tasting")
		w.run(func(c *Config) {
			c.Locations.Prefixes = []string{"file://" + saved + "/"}
			c.Descriptors = []Descriptor{
				{DataType: "wine", Apps: []string{"tasting"}, InputType: "doubles", InputLength: 11, Requirements: []string{"tensorflow==2.19.0"}, Options: map[string]string{"threads": "1"}},
				{DataType: "white", Model: "white-wine"},
			}
		})
		for _, one := range []struct {
			message serving.StreamMessage
			dead    string            // why; empty: the version is there
			model   string            // that got it
			files   map[string]string // of its bundle, some
			says    []string          // its manifest
		}{
			{described("wine", 2, []byte("<PMML/>"), ""), "", "wine", map[string]string{"model.pmml": "<PMML/>"}, []string{`"runtime": "pmml"`, `"input_length": 11`}},
			{described("wine", 0, []byte("graph"), ""), "", "wine", map[string]string{"frozen.pb": "graph"}, []string{`"entry": "frozen.pb"`, `"tensorflow==2.19.0"`, `"threads": "1"`}},
			{
				described("wine", 1, nil, saved+"/model"), "", "wine",
				map[string]string{"saved_model/saved_model.pb": "graph", "saved_model/variables/variables.index": "weights"}, []string{`"entry": "saved_model"`},
			},
			{described("wine", 1, []byte("graph"), ""), "invalid: the model is no zip archive", "", nil, nil},
			{described("white", 2, []byte("<PMML/>"), ""), "invalid: a model of kind pmml needs an input_type", "", nil, nil},
			{described("beer", 2, []byte("<PMML/>"), ""), `unknown_type: the stream has no models for the data type "beer"`, "", nil, nil},
			{described("wine", 3, []byte("x"), ""), "unknown_kind: there is no modeltype 3", "", nil, nil},
			{described("wine", 2, nil, ""), "invalid: give data", "", nil, nil},
			{described("wine", 2, nil, saved+"/model"), "location_refused: the location file://" + saved + "/model is no file", "", nil, nil},
			{described("wine", 2, nil, "/etc/passwd"), "location_refused", "", nil, nil},
			{described("wine", 2, nil, "data/winequality.pmml"), "location_refused", "", nil, nil},
			{text("garbage"), "unreadable: the message is no model descriptor", "", nil, nil},
		} {
			dead := len(w.read("dead"))
			w.write(one.message)
			w.settle()
			if refused := w.read("dead")[dead:]; one.dead != "" || len(refused) > 0 {
				if len(refused) != 1 || !strings.HasPrefix(refused[0].Header(stream.HeaderKind)+": "+refused[0].Header(stream.HeaderReason), one.dead) {
					t.Fatalf("the dead letters are %v, and not one that says %q", refused, one.dead)
				}
				continue
			}
			out := w.read("out")
			ack, err := ParseAcknowledgement(out[len(out)-1].Value, 2)
			if err != nil || ack.Outcome != Deployed || ack.Model != one.model || w.current(one.model) != ack.Version || !strings.HasSuffix(ack.Version, "-"+ack.UUID) {
				t.Fatalf("%s: %+v, %v; current is %q", out[len(out)-1].Value, ack, err, w.current(one.model))
			}
			files := w.unzipped(ack.Bundle)
			for name, want := range one.files {
				if files[name] != want {
					t.Errorf("%s is %q in the bundle, not %q", name, files[name], want)
				}
			}
			for _, want := range one.says {
				if !strings.Contains(files["manifest.json"], want) {
					t.Errorf("the manifest does not say %s: %s", want, files["manifest.json"])
				}
			}
		}
		v := w.store.Catalog().Version(serving.ModelID{Model: "wine", Version: w.current("wine")})
		if v.Description != "winequality: generated from R" || v.InputType != serving.Doubles {
			t.Errorf("the version is %+v", v)
		}
		versions := len(w.store.Catalog().Models["wine"].Versions)
		w.stop()
		w.mu.Lock()
		w.done = 0 // all come again, and nothing is done twice
		w.mu.Unlock()
		w.Close()
		w.run(nil)
		w.settle()
		if n := len(w.store.Catalog().Models["wine"].Versions); n != versions {
			t.Errorf("%d versions after all messages came again, not %d", n, versions)
		}
	})
}

// unzipped are the files of a bundle.
func (w *world) unzipped(digest string) map[string]string {
	w.Helper()
	stored, err := w.bundles.Open(w.Context(), digest)
	require.NoError(w, err)
	defer stored.Close()
	all, err := io.ReadAll(stored)
	require.NoError(w, err)
	archive, err := zip.NewReader(bytes.NewReader(all), int64(len(all)))
	require.NoError(w, err)
	files := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		require.NoError(w, err)
		b, err := io.ReadAll(r)
		require.NoError(w, err)
		files[f.Name] = string(b)
	}
	return files
}
