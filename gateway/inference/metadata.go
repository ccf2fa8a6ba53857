package inference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// The server, as it describes itself.
const (
	ServerName    = "topsail"
	ServerVersion = "2" // of the protocol
	Platform      = "topsail"
)

// Extensions are those of the protocol that are served.
func Extensions() []string {
	return []string{"binary_tensor_data", "model_repository", "model_configuration", "statistics"}
}

// Metadata is what the protocol says of a model, which is an app.
type Metadata struct {
	Name     string           `json:"name"`
	Versions []string         `json:"versions"`
	Platform string           `json:"platform"`
	Inputs   []TensorMetadata `json:"inputs"`
	Outputs  []TensorMetadata `json:"outputs"`
}

// TensorMetadata is one input or output of a model, with the batch in front of its shape.
type TensorMetadata struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	Shape    []int  `json:"shape"`
}

// UnknownVersion says that a model has no version of a name.
type UnknownVersion struct{ Model, Version string }

func (e *UnknownVersion) Error() string {
	return fmt.Sprintf("model %q has no version %q", e.Model, e.Version)
}

// CheckVersion says that an app has no version of a name, as an UnknownVersion; an empty one is any.
func CheckVersion(app *serving.App, cat *serving.Catalog, version string) error {
	if version != "" && !slices.Contains(Versions(app, cat), version) {
		return &UnknownVersion{app.Name, strings.Clone(version)}
	}
	return nil
}

// NewMetadata is the metadata of an app, or of one version of its model unless that is empty. Its error
// is an UnknownVersion.
func NewMetadata(app *serving.App, cat *serving.Catalog, version string) (*Metadata, error) {
	if err := CheckVersion(app, cat, version); err != nil {
		return nil, err
	}
	versions := Versions(app, cat)
	if version != "" {
		versions = []string{strings.Clone(version)}
	}
	list := func(tensors []serving.Tensor) []TensorMetadata {
		all := []TensorMetadata{}
		for i := range tensors {
			all = append(all, TensorMetadata{tensors[i].Name, serving.DType(tensors[i].Type).Datatype(), batched(&tensors[i])})
		}
		return all
	}
	return &Metadata{app.Name, versions, Platform, list(columns(Inputs(app, lengthOf(app, cat, version)))), list(Outputs(app))}, nil
}

// columns are inputs as they are told: one element of a query has a dimension, in which clients may send it, since Triton
// knows none without and its perf_analyzer cannot ask for those.
func columns(tensors []serving.Tensor) []serving.Tensor {
	told := slices.Clone(tensors)
	for i := range told {
		if len(told[i].Shape) == 0 {
			told[i].Shape = []int{1}
		}
	}
	return told
}

// Config is the configuration that Triton would have for a model, as far as its clients need it.
type Config struct {
	Name         string         `json:"name"`
	Platform     string         `json:"platform"`
	MaxBatchSize int            `json:"max_batch_size"`
	Input        []ConfigTensor `json:"input"`
	Output       []ConfigTensor `json:"output"`
}

// ConfigTensor is one input or output in a model's configuration, without the batch.
type ConfigTensor struct {
	Name     string `json:"name"`
	DataType string `json:"data_type"` // as in TYPE_FP32
	Dims     []int  `json:"dims"`
}

// lengthOf is the length of the inputs of an app, or of a version of its only model.
func lengthOf(app *serving.App, cat *serving.Catalog, version string) int {
	if version == "" {
		return InputLength(app, cat)
	}
	return cat.Version(serving.ModelID{Model: app.Models[0], Version: version}).InputLength
}

// NewConfig is the configuration of an app, or of one version of its model unless that is empty. Its error is an
// UnknownVersion.
func NewConfig(app *serving.App, cat *serving.Catalog, version string, maxBatch int) (*Config, error) {
	if err := CheckVersion(app, cat, version); err != nil {
		return nil, err
	}
	list := func(tensors []serving.Tensor) []ConfigTensor {
		all := []ConfigTensor{}
		for _, t := range tensors {
			name := strings.Replace(serving.DType(t.Type).Datatype(), "BYTES", "STRING", 1)
			all = append(all, ConfigTensor{t.Name, "TYPE_" + name, append([]int{}, t.Shape...)})
		}
		return all
	}
	return &Config{app.Name, Platform, maxBatch, list(columns(Inputs(app, lengthOf(app, cat, version)))), list(Outputs(app))}, nil
}
