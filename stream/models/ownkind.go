package models

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving/bundle"
)

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
