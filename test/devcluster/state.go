package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// state is what `cluster down` has to know.
type state struct {
	Servers []server `json:"servers"` // in the order of their start
}

type server struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
}

func (o options) stateFile() string { return filepath.Join(o.dir, "state.json") }

func (o options) save(s state) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.stateFile(), b, 0o644)
}

// load is empty where no cluster was started.
func (o options) load() (s state, err error) {
	b, err := os.ReadFile(o.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	return s, json.Unmarshal(b, &s)
}
