package imports

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/topsail-serving/topsail/internal/imports/proto"
	"github.com/topsail-serving/topsail/serving"
)

const (
	configName   = "config.pbtxt"
	autoComplete = "Triton completes it from the model: add the inputs and outputs that `curl HOST:8000/v2/models/NAME/config` shows"
)

// backend is one of Triton's that has a runtime here.
type backend struct {
	runtime, file string // the file without default_model_filename
	needs, onGPU  []string
}

var backends = map[string]backend{
	"onnxruntime": {"onnx", "model.onnx", []string{"onnxruntime"}, []string{"onnxruntime-gpu[cuda,cudnn]"}},
	"pytorch":     {"torch", "model.pt", []string{"torch", "numpy"}, []string{"torch", "numpy"}},
	"python":      {"python", "model.py", nil, nil},
}

// platforms are the backends of older configurations.
var platforms = map[string]string{"onnxruntime_onnx": "onnxruntime", "pytorch_libtorch": "pytorch", "ensemble": "ensemble"}

// others says what to do about models of other backends.
var others = map[string]string{
	"ensemble":   "import its models, and name them as the stages of an app",
	"fil":        "deploy the trees with topsail.deploy_xgboost, topsail.deploy_lightgbm or topsail.deploy_sklearn",
	"tensorflow": "deploy the SavedModel with topsail.deploy_tensorflow",
	"tensorrt":   "a plan is for one GPU and one release of TensorRT: bring the ONNX model that it was built from",
	"vllm":       "run the engine itself, with `topsail engine openai`",
}

// parseConfig reads a config.pbtxt. Fields that are not read are skipped.
func parseConfig(text []byte) (*proto.ModelConfig, error) {
	c := &proto.ModelConfig{}
	if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, c); err != nil {
		text := strings.ReplaceAll(err.Error(), "\u00a0", " ") // which prototext puts there now and then, so that its errors are not relied on
		return nil, fmt.Errorf("%s cannot be read: %s", configName, strings.TrimPrefix(text, "proto: "))
	}
	if c.GetMaxBatchSize() < 0 {
		return nil, fmt.Errorf("%s: max_batch_size must not be negative", configName)
	}
	return c, nil
}

// readTriton reads the folder of a model: its configuration, and the versions that the policy chooses.
func readTriton(from fs.FS, folder string) ([]*Version, error) {
	text, err := readText(from, configName)
	if err != nil {
		return nil, err
	}
	c, err := parseConfig(text)
	if err != nil {
		return nil, err
	}
	c.Name = cmp.Or(c.GetName(), folder)
	backend, err := backendOf(c)
	if err != nil {
		return nil, err
	}
	inputs, outputs, err := signatureOf(c, backend.runtime)
	if err != nil {
		return nil, err
	}
	numbers, err := chosen(from, c.GetVersionPolicy())
	if err != nil {
		return nil, err
	}
	var versions []*Version
	for _, n := range numbers {
		v := newVersion(c.GetName(), strconv.Itoa(n), backend.runtime)
		v.signature(inputs, outputs)
		v.configure(c)
		if err := v.takeVersion(from, c, backend); err != nil {
			return nil, err
		}
		versions = append(versions, v)
	}
	return versions, nil
}

// backendOf is the backend of a model, or why it cannot be brought.
func backendOf(c *proto.ModelConfig) (b backend, err error) {
	name := cmp.Or(c.GetBackend(), platforms[c.GetPlatform()], c.GetPlatform())
	if c.GetEnsembleScheduling() != nil {
		name = "ensemble"
	}
	if name == "" && strings.HasSuffix(c.GetDefaultModelFilename(), ".onnx") {
		name = "onnxruntime"
	}
	b, ok := backends[name]
	if ok {
		return b, nil
	}
	if name == "" {
		return b, fmt.Errorf("%s has no backend: add it, as in backend: \"onnxruntime\"", configName)
	}
	for known, advice := range others {
		if strings.HasPrefix(name, known) {
			return b, fmt.Errorf("the backend %s has no runtime here: %s", name, advice)
		}
	}
	return b, fmt.Errorf("the backend %s has no runtime here: deploy a Python function that does the same, with topsail.deploy_python_function", name)
}

// signatureOf names the inputs and outputs of one query.
func signatureOf(c *proto.ModelConfig, runtime string) (inputs, outputs []serving.Tensor, err error) {
	switch {
	case c.GetSequenceBatching() != nil:
		return nil, nil, errors.New("sequence_batching keeps a state for each sequence, and queries have none: send the state with each query")
	case c.GetModelTransactionPolicy().GetDecoupled():
		return nil, nil, errors.New("a decoupled model answers when it likes: make predict a generator, which answers in parts")
	case len(c.GetBatchInput())+len(c.GetBatchOutput()) > 0:
		return nil, nil, errors.New("batch_input and batch_output are made for a whole batch, and queries have none of them")
	case len(c.GetInput()) == 0:
		return nil, nil, fmt.Errorf("%s has no inputs: %s", configName, autoComplete)
	}
	// Without batches Triton's models get tensors as clients send them. What runs in onnxruntime or PyTorch takes rows.
	rows := c.GetMaxBatchSize() == 0 && runtime != "python"
	if inputs, err = tritonTensors(c.GetInput(), rows, inputText(runtime)); err != nil {
		return nil, nil, err
	}
	outputs, err = tritonTensors(c.GetOutput(), rows, serving.String)
	return inputs, outputs, err
}

// inputText is what a model gets for TYPE_STRING: in Python bytes, as in Triton.
func inputText(runtime string) serving.DType {
	if runtime == "python" {
		return serving.Blob
	}
	return serving.String
}

// tritonTensors are the tensors of one query. With rows, the first dimension is the batch, and not part of it.
func tritonTensors(all []*proto.ModelTensor, rows bool, text serving.DType) (tensors []serving.Tensor, err error) {
	for _, t := range all {
		one := serving.Tensor{Name: t.GetName()}
		if one.Type, err = elementType(strings.TrimPrefix(t.GetDataType().String(), "TYPE_"), text); err != nil {
			return nil, fmt.Errorf("%q: %w", t.GetName(), err)
		}
		if t.GetReshape() != nil {
			return nil, fmt.Errorf("%q is reshaped, and a model here gets what clients send: export it with the shape of its dims", t.GetName())
		}
		for _, d := range t.GetDims() {
			one.Shape = append(one.Shape, int(d))
		}
		if rows {
			if len(one.Shape) == 0 || one.Shape[0] != -1 && one.Shape[0] != 1 {
				return nil, fmt.Errorf("%q has dims %v and max_batch_size is 0, and a model here takes a batch of queries: "+
					"export it with a first dimension that is open", t.GetName(), t.GetDims())
			}
			one.Shape = one.Shape[1:]
		}
		tensors = append(tensors, one)
	}
	return tensors, nil
}

// chosen are the versions that the policy chooses of those that are there, the newest last.
func chosen(from fs.FS, policy *proto.ModelVersionPolicy) (numbers []int, err error) {
	entries, err := fs.ReadDir(from, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 && strconv.Itoa(n) == e.Name() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	switch {
	case policy.GetSpecific() != nil:
		numbers = slices.DeleteFunc(numbers, func(n int) bool { return !slices.Contains(policy.GetSpecific().GetVersions(), int64(n)) })
	case policy.GetAll() == nil:
		latest := max(1, int(policy.GetLatest().GetNumVersions()))
		numbers = numbers[max(0, len(numbers)-latest):]
	}
	if len(numbers) == 0 {
		return nil, errors.New("there are no folders of versions, such as 1, that the version_policy chooses")
	}
	return numbers, nil
}

// configure takes over how the model is run, and notes what is not as it was.
func (v *Version) configure(c *proto.ModelConfig) {
	batching := c.GetDynamicBatching()
	v.batches(max(1, int(c.GetMaxBatchSize())), time.Duration(min(batching.GetMaxQueueDelayMicroseconds(), 1e9))*time.Microsecond)
	if len(batching.GetPreferredBatchSize()) > 0 {
		v.note("preferred_batch_size is not read: the size of batches follows their times")
	}
	for _, g := range c.GetInstanceGroup() {
		v.Replicas += int(min(max(1, g.GetCount()), serving.MaxReplicas)) * max(1, len(g.GetGpus()))
		if g.GetKind() == proto.ModelInstanceGroup_KIND_GPU {
			v.GPUs = 1
		}
	}
	v.Replicas = min(v.Replicas, serving.MaxReplicas)
	for _, t := range c.GetInput() {
		if t.GetOptional() {
			v.note("the input %q is optional in Triton, and every query has to have it here", t.GetName())
		}
	}
	if c.GetMaxBatchSize() == 0 && v.Manifest.Runtime != "python" {
		v.note("max_batch_size is 0: the first dimension of its tensors is the number of queries, and the model gets one at a time")
	}
	c.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if m := f.Message(); m != nil && !f.IsMap() && m.FullName() == (&proto.Skipped{}).ProtoReflect().Descriptor().FullName() {
			v.Notes = append(v.Notes, string(f.Name())+" is not read")
		}
		return true
	})
	slices.Sort(v.Notes)
}

// takeVersion adds what is in the folder of the version, and says how it is run.
func (v *Version) takeVersion(from fs.FS, c *proto.ModelConfig, b backend) error {
	number := v.ModelID.Version
	name := path.Clean(cmp.Or(c.GetDefaultModelFilename(), b.file))
	if !fs.ValidPath(name) {
		return fmt.Errorf("default_model_filename is %q, which is not in the folder of a version", name)
	}
	info, err := fs.Stat(from, path.Join(number, name))
	if err != nil {
		return fmt.Errorf("version %s: the model: %w", number, err)
	}
	if b.runtime == "python" {
		return v.takePython(from, c, name)
	}
	if info.IsDir() { // with weights beside the model
		name = path.Join(name, b.file)
	}
	if len(c.GetParameters()) > 0 {
		v.note("parameters are not read")
	}
	v.Manifest.Entry = name
	needs := b.needs
	if v.GPUs > 0 {
		v.Manifest.Options["device"], needs = "cuda", b.onGPU
	}
	return errors.Join(v.take(from, number, func(string) bool { return true }), v.require(from, "requirements.txt", needs...))
}
