package imports

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const settingsName = "model-settings.json"

// settings are MLServer's of a model, as far as they are read.
type settings struct {
	Name            string           `json:"name"`
	Implementation  string           `json:"implementation"`
	Inputs          []settingsTensor `json:"inputs"`
	Outputs         []settingsTensor `json:"outputs"`
	ParallelWorkers int              `json:"parallel_workers"`
	MaxBatchSize    int              `json:"max_batch_size"`
	MaxBatchTime    float64          `json:"max_batch_time"` // seconds
	Parameters      struct {
		URI         string `json:"uri"`
		Version     string `json:"version"`
		Environment string `json:"environment_tarball"`
	} `json:"parameters"`
}

type settingsTensor struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	Shape    []int  `json:"shape"` // with the batch in front
}

// implementation is a runtime of MLServer that has one here.
type implementation struct {
	runtime, needs string
	files          []string // that it looks for in a folder, in this order
}

var implementations = map[string]implementation{
	"mlserver_sklearn.SKLearnModel":   {"sklearn", "scikit-learn", []string{"model.joblib", "model.pickle", "model.pkl"}},
	"mlserver_xgboost.XGBoostModel":   {"xgboost", "xgboost", []string{"model.bst", "model.json", "model.ubj"}},
	"mlserver_lightgbm.LightGBMModel": {"lightgbm", "lightgbm", []string{"model.bst"}},
}

// parseSettings reads a model-settings.json. Members that are not read are skipped, as MLServer does.
func parseSettings(text []byte) (s settings, err error) {
	if err = json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%s cannot be read: %w", settingsName, err)
	}
	if s.MaxBatchSize < 0 || s.ParallelWorkers < 0 || !(s.MaxBatchTime >= 0 && s.MaxBatchTime < 1e6) {
		return s, fmt.Errorf("%s: parallel_workers, max_batch_size and max_batch_time must not be negative, nor a batch wait for days", settingsName)
	}
	return s, nil
}

// readMLServer reads a folder with a model-settings.json.
func readMLServer(from fs.FS, folder string) ([]*Version, error) {
	text, err := readText(from, settingsName)
	if err != nil {
		return nil, err
	}
	s, err := parseSettings(text)
	if err != nil {
		return nil, err
	}
	if s.Name == "" {
		s.Name = folder
	}
	like, ok := implementations[s.Implementation]
	if !ok {
		return nil, unknownImplementation(s.Implementation)
	}
	v := newVersion(s.Name, s.Parameters.Version, like.runtime)
	if err := v.takeModel(from, s.Parameters.URI, like); err != nil {
		return nil, err
	}
	if err := v.describe(&s); err != nil {
		return nil, err
	}
	needs := []string{like.needs}
	if inputs := v.Manifest.Signature.InputTensors(); len(inputs) > 0 && !isVector(inputs) {
		needs = append(needs, "pandas") // whose tables have a column for each input
	}
	if err := v.require(from, "requirements.txt", needs...); err != nil {
		return nil, err
	}
	if v.Manifest.Runtime == "xgboost" && savesClasses(from, v.files[0].at) {
		v.Manifest.Options["output"] = "label"
	}
	v.batches(s.MaxBatchSize, time.Duration(s.MaxBatchTime*float64(time.Second)))
	v.Replicas = s.ParallelWorkers
	if s.Parameters.Environment != "" {
		v.note("environment_tarball is not read: name its packages by --require")
	}
	return []*Version{v}, nil
}

func unknownImplementation(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s has no implementation, the class that runs the model", settingsName)
	case strings.HasPrefix(name, "mlserver_mlflow."):
		return errors.New("an MLflow model is a Python function: deploy one that calls mlflow.pyfunc.load_model, with topsail.deploy_python_function")
	case strings.HasPrefix(name, "mlserver_"), strings.HasPrefix(name, "mlserver."):
		return fmt.Errorf("%s has no runtime here: deploy a Python function that calls the model, with topsail.deploy_python_function", name)
	}
	return fmt.Errorf("the class %s is called as MLServer calls it, with its own requests and answers: give a class predict(self, inputs), "+
		"and deploy it with topsail.deploy_python_function", name)
}

// takeModel adds the model's file, which comes first, and the Python modules that a pickled model may name.
func (v *Version) takeModel(from fs.FS, uri string, like implementation) error {
	at := path.Clean(strings.TrimPrefix(uri, "file:"))
	if !fs.ValidPath(at) || strings.Contains(uri, "://") {
		return fmt.Errorf("parameters.uri is %q, which is not in the folder: copy the model there", uri)
	}
	info, err := fs.Stat(from, at)
	if err != nil {
		return fmt.Errorf("the model: %w", err)
	}
	for i := 0; info.IsDir(); i++ {
		if i == len(like.files) {
			return fmt.Errorf("the model is none of %s: name its file in parameters.uri", strings.Join(like.files, ", "))
		}
		if found, err := fs.Stat(from, path.Join(at, like.files[i])); err == nil {
			at, info = path.Join(at, like.files[i]), found
		}
	}
	v.Manifest.Entry = path.Base(at)
	if v.Manifest.Runtime != "sklearn" {
		return v.takeFile(from, at, v.Manifest.Entry)
	}
	v.Manifest.Entry = "model.joblib" // which reads what was only pickled, too
	if err := v.takeFile(from, at, v.Manifest.Entry); err != nil {
		return err
	}
	return v.take(from, ".", func(name string) bool { return strings.HasSuffix(name, ".py") })
}

// describe says what the inputs and outputs are, as far as the settings do.
func (v *Version) describe(s *settings) error {
	inputs, err := tensorsOf(s.Inputs)
	if err != nil {
		return err
	}
	switch {
	case len(inputs) == 0:
		v.Manifest.InputType = serving.Doubles
		v.note("%s names no inputs: they are vectors of FP64, and any other datatype is refused", settingsName)
	case !isVector(inputs) && v.Manifest.Runtime != "sklearn":
		return fmt.Errorf("%s has one matrix as its input, and %d inputs are named: name one of the shape [-1, COLUMNS]", s.Implementation, len(inputs))
	case !isVector(inputs):
		for _, t := range inputs {
			if len(t.Shape) > 0 {
				return fmt.Errorf("input %q is %v for each query, and a column of a table has one value: give it the shape [-1]", t.Name, t)
			}
		}
	}
	outputs, err := v.output(s.Outputs)
	if err != nil {
		return err
	}
	v.signature(inputs, outputs)
	return nil
}

// isVector says that the inputs are one vector for each query: a batch is a matrix.
func isVector(inputs []serving.Tensor) bool { return len(inputs) == 1 && len(inputs[0].Shape) == 1 }

// output is the one that the runtime gives. MLServer's clients may ask for others of the same model.
func (v *Version) output(all []settingsTensor) ([]serving.Tensor, error) {
	if len(all) == 0 {
		v.note(`%s names no outputs: the one of the answer is called "output", and not "predict"`, settingsName)
		return nil, nil
	}
	first := all[0].Name
	switch {
	case first == "predict_proba" && v.Manifest.Runtime == "sklearn":
		v.Manifest.Options["method"] = first
	case first != "predict":
		return nil, fmt.Errorf("the output %q cannot be had: name %q first", first, "predict")
	}
	for _, t := range all[1:] {
		v.note("the output %q is not there, as a version has one: import the model once more, with that output alone and another name", t.Name)
	}
	return tensorsOf(all[:1])
}

// tensorsOf are those of one query: without the batch, and with columns of one value as a value.
func tensorsOf(all []settingsTensor) (tensors []serving.Tensor, err error) {
	for _, s := range all {
		t := serving.Tensor{Name: s.Name}
		if t.Type, err = elementType(s.Datatype, serving.String); err != nil {
			return nil, fmt.Errorf("%q: %w", s.Name, err)
		}
		if len(s.Shape) == 0 {
			return nil, fmt.Errorf("%q has no shape: write it with the batch in front, as [-1, 4]", s.Name)
		}
		if t.Shape = s.Shape[1:]; len(t.Shape) == 1 && t.Shape[0] == 1 {
			t.Shape = nil
		}
		tensors = append(tensors, t)
	}
	return tensors, nil
}

// batches sets the largest batch, and how long one may wait; 0: what the default is.
func (v *Version) batches(size int, delay time.Duration) {
	if delay > serving.MaxBatchDelay {
		v.note("a batch waits for %v, and not %v", serving.MaxBatchDelay, delay)
	}
	v.Batch = serving.BatchSpec{MaxSize: min(size, 65536), Delay: serving.Duration(min(delay, serving.MaxBatchDelay))}
}

var classifier = regexp.MustCompile(`_estimator_type\\?": ?\\?"classifier`)

// savesClasses says whether an XGBoost model was saved by a classifier with scikit-learn's methods, whose predictions
// MLServer answers with classes, and not with probabilities.
func savesClasses(from fs.FS, at string) bool {
	file, err := from.Open(at)
	if err != nil {
		return false // it is found when the file is copied
	}
	defer func() { _ = file.Close() }() // it was only read
	return classifier.MatchReader(bufio.NewReader(file))
}
