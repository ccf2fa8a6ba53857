package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/stream"
)

// bundleKind is the kind of models that are bundles already.
const bundleKind = "bundle"

// factory says how models of a kind become bundles.
type factory struct {
	runtime string // of the bundle
	file    string // what the model is called in the bundle, where it has no entry
	single  string // instead, where it could be a folder, and is a file
	python  bool   // it runs in Python
	folder  bool   // it is a folder, so that an archive without an entry is unpacked into file
	own     *OwnKind
}

// factories are those of all kinds but bundles.
func factories() map[string]factory {
	return map[string]factory{
		"python":              {runtime: "python", file: "model.pkl", python: true},
		"sklearn":             {runtime: "sklearn", file: "model.pkl", python: true},
		"onnx":                {runtime: "onnx", file: "model.onnx", python: true},
		"torch":               {runtime: "torch", file: "model.pt", python: true},
		"xgboost":             {runtime: "xgboost", file: "model.json", python: true},
		"lightgbm":            {runtime: "lightgbm", file: "model.txt", python: true},
		"r":                   {runtime: "r", file: "model.R", python: true},
		"pyspark":             {runtime: "pyspark", file: "model.pkl", python: true},
		"tensorflow":          {runtime: "tensorflow", file: "saved_model", single: "frozen.pb", python: true, folder: true},
		bundle.PMMLRuntime:    {runtime: bundle.PMMLRuntime, file: "model.pmml"},
		bundle.CommandRuntime: {runtime: bundle.CommandRuntime, file: "serve"},
	}
}

// factoryOf finds the factory of a model's kind, which may be one of the user's own.
func factoryOf(kind string, own []OwnKind) (factory, *stream.Rejection) {
	all := factories()
	for i := range own {
		all[own[i].Name] = own[i].factory()
	}
	f, known := all[kind]
	if !known && kind != bundleKind {
		all[bundleKind] = factory{}
		kinds := slices.Sorted(maps.Keys(all))
		return factory{}, rejected(UnknownKind, "there is no kind of model %.100q: use one of %s", kind, strings.Join(kinds, ", "))
	}
	return f, nil
}

// entryOf is what the manifest names as the model.
func (f factory) entryOf(m *Model) string {
	if f.runtime == bundle.CommandRuntime {
		return ""
	}
	if f.own != nil {
		return f.own.Entry
	}
	return cmp.Or(m.Entry, f.nameOf(m))
}

// nameOf is what a model without an entry is called.
func (f factory) nameOf(m *Model) string {
	if f.folder && !m.Archive {
		return f.single
	}
	return f.file
}

// folderOf is where an archive is unpacked; empty: at the root of the bundle.
func (f factory) folderOf(m *Model) string {
	if f.folder && m.Entry == "" {
		return f.file
	}
	return ""
}

// fileOf is what a model that is one file is called in the bundle. The module of an entry
// module:callable is the file of its source.
func (f factory) fileOf(m *Model) string {
	if module, _, named := strings.Cut(m.Entry, ":"); named {
		return strings.ReplaceAll(module, ".", "/") + ".py"
	}
	return cmp.Or(m.Entry, f.nameOf(m))
}

// manifest is that of the bundle; python is the one of models that name none.
func (f factory) manifest(m *Model, python string) *bundle.Manifest {
	out := &bundle.Manifest{
		Runtime: f.runtime, Requirements: m.Requirements, Entry: f.entryOf(m), InputLength: int(m.InputLength), Description: m.summary(),
		Options: m.Options, Command: m.Command,
	}
	if m.InputType != "" {
		out.InputType, _ = serving.ParseInputType(m.InputType) // it was checked
	}
	if m.Example != "" {
		out.Example = []byte(m.Example)
	}
	if out.Python = m.Python; f.python {
		out.Python = cmp.Or(m.Python, python)
	}
	if f.own != nil {
		out.Requirements = append(slices.Clip(f.own.Requirements), m.Requirements...)
		out.Options = map[string]string{loaded: cmp.Or(m.Entry, f.nameOf(m))}
		maps.Copy(out.Options, m.Options)
	}
	if f.runtime == bundle.CommandRuntime && len(out.Command) == 0 && !m.Archive {
		out.Command = []string{"./" + f.fileOf(m)}
	}
	return out
}

// OwnKind is a kind of model of the user's own, as a class in Python with the methods load(path), which is given what messages
// bring, and predict(inputs).
type OwnKind struct {
	Name         string   // as messages say it
	Code         string   // file or folder of the class
	Entry        string   // module:class
	Requirements []string // beside those of messages
	ModelType    int      // of the model descriptors of FLIP-23 that are of this kind; 0: none are
}

// loaded is the option of a bundle in Python that says what its class loads.
const loaded = "model"

// factory is that of the kind.
func (k *OwnKind) factory() factory {
	return factory{runtime: "python", file: "model", python: true, folder: true, single: "model", own: k}
}

// checkKinds says what is wrong with the kinds of a job, or nil.
func checkKinds(all []OwnKind) error {
	known := factories()
	for i, k := range all {
		m := bundle.Manifest{Runtime: "python", Python: "3.11", Entry: k.Entry, Requirements: k.Requirements}
		switch err := m.Check(); {
		case k.Name == "" || k.Name == bundleKind || known[k.Name].runtime != "":
			return fmt.Errorf("kind %q: give it a name that is not one of %s", k.Name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case slices.ContainsFunc(all[:i], func(before OwnKind) bool { return before.Name == k.Name }):
			return fmt.Errorf("the kind %q is there twice", k.Name)
		case k.ModelType != 0 && k.ModelType < 3:
			return fmt.Errorf("kind %q: model_type is a number from 3 on, which FLIP-23 leaves free", k.Name)
		case err != nil:
			return fmt.Errorf("kind %q: %w", k.Name, err)
		}
	}
	return nil
}

// addCode lays the code out in the folder of a bundle.
func (k *OwnKind) addCode(dir string) error {
	info, err := os.Stat(k.Code)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.CopyFS(dir, os.DirFS(k.Code))
	} else {
		err = k.addFile(dir)
	}
	if errors.Is(err, fs.ErrExist) {
		return rejected(Invalid, "the model has a file with a name that the code of kind %s has: %v", k.Name, err)
	}
	return err
}

// addFile adds the one file, as the module of the entry.
func (k *OwnKind) addFile(dir string) error {
	code, err := os.ReadFile(k.Code)
	if err != nil {
		return err
	}
	module, _, _ := strings.Cut(k.Entry, ":")
	file := filepath.Join(dir, filepath.FromSlash(strings.ReplaceAll(module, ".", "/"))+".py")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, code, 0o600)
}
