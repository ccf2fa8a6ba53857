package imports

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/topsail-serving/topsail/internal/imports/proto"
)

// runTriton is what runs a model of Triton's Python backend: containers/python has it.
const runTriton = "topsail.runtime.triton:Model"

// tritonFile tells it about the model.
const tritonFile = "triton.json"

type tritonModel struct {
	File    string          `json:"file"` // in the folder of the version
	Version string          `json:"version"`
	Kind    string          `json:"kind"`   // of instances
	Config  json.RawMessage `json:"config"` // as the model gets it
}

// takePython adds a model of the Python backend, with what is beside the folders of its versions: it may read that.
func (v *Version) takePython(from fs.FS, c *proto.ModelConfig, name string) error {
	number := v.ModelID.Version
	told := tritonModel{File: name, Version: number, Kind: "CPU"}
	if v.GPUs > 0 {
		told.Kind = "GPU"
	}
	if c.GetParameters()["EXECUTION_ENV_PATH"] != nil {
		v.note("the environment of EXECUTION_ENV_PATH is not read: name its packages by --require")
	}
	var err error
	if told.Config, err = (protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}).Marshal(c); err != nil {
		return err
	}
	text, err := json.Marshal(told) // without the spaces that protojson puts there now and then
	if err != nil {
		return err
	}
	v.Manifest.Entry = runTriton
	v.files = append(v.files, file{name: tritonFile, text: text, size: int64(len(text))})
	needs := path.Join(number, "requirements.txt")
	if _, err := fs.Stat(from, needs); err != nil {
		needs = "requirements.txt"
	}
	if _, err := fs.Stat(from, needs); err != nil {
		v.note("%s may import packages that no requirements.txt names: add them by --require", name)
	}
	return errors.Join(v.take(from, ".", func(name string) bool {
		first, _, below := strings.Cut(name, "/")
		return name != tritonFile && (!below || first == number || strings.Trim(first, "0123456789") != "")
	}), v.require(from, needs, "numpy"))
}
