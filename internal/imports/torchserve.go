package imports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// marName is the manifest's in an archive of TorchServe.
const marName = "MAR-INF/MANIFEST.json"

// marManifest is what an archive says of itself, as far as it is read.
type marManifest struct {
	Model marModel `json:"model"`
}

type marModel struct {
	Name           string `json:"modelName"`
	Version        string `json:"modelVersion"`
	SerializedFile string `json:"serializedFile"`
	ModelFile      string `json:"modelFile"`
	Handler        string `json:"handler"`
	Requirements   string `json:"requirementsFile"`
	Config         string `json:"configFile"`
}

// handlers are TorchServe's own that the runtime torch has, with what they answer.
var handlers = map[string]serving.Tensor{
	"image_classifier": {Name: "output", Type: serving.ElementType(serving.JSON)},
	"image_segmenter":  {Name: "output", Type: serving.ElementType(serving.Float32), Shape: []int{-1, -1, 2}},
}

// otherHandlers says why the others cannot be brought.
var otherHandlers = map[string]string{
	"object_detector":       "detectors need torchvision's operators, and answer with lists of boxes",
	"text_classifier":       "it needs torchtext, which is no longer developed, and its vocabulary",
	"dali_image_classifier": "it needs DALI and a GPU: archive the module once more, with the handler image_classifier",
	"base_handler":          "the archive says neither the type nor the shape of its input: deploy the module with topsail.deploy_torch and an example",
}

// parseMAR reads the manifest of an archive.
func parseMAR(text []byte) (m marModel, err error) {
	var whole marManifest
	if err := json.Unmarshal(text, &whole); err != nil {
		return m, fmt.Errorf("%s cannot be read: %w", marName, err)
	}
	for _, name := range []string{whole.Model.SerializedFile, whole.Model.Requirements, whole.Model.Config} {
		if name != "" && !fs.ValidPath(name) {
			return m, fmt.Errorf("%s names %q, which is not in the archive", marName, name)
		}
	}
	return whole.Model, nil
}

// readMAR reads an archive, or what was in one.
func readMAR(from fs.FS, name string) ([]*Version, error) {
	text, err := readText(from, marName)
	if err != nil {
		return nil, err
	}
	m, err := parseMAR(text)
	if err != nil {
		return nil, err
	}
	if m.Name == "" {
		m.Name = name
	}
	output, ok := handlers[m.Handler]
	switch ending := path.Ext(m.SerializedFile); {
	case otherHandlers[m.Handler] != "":
		return nil, fmt.Errorf("the handler %s: %s", m.Handler, otherHandlers[m.Handler])
	case !ok:
		return nil, fmt.Errorf("the handler %q is code for TorchServe's requests and answers: give a class predict(self, inputs), "+
			"and deploy it with topsail.deploy_python_function", m.Handler)
	case m.ModelFile != "":
		return nil, fmt.Errorf("%s are weights for the class in %s: save it with torch.jit.script(model).save(%q), and archive that without a model file",
			m.SerializedFile, m.ModelFile, "model.pt")
	case !slices.Contains([]string{".pt", ".pth"}, ending):
		return nil, fmt.Errorf("%q is not TorchScript: the handlers are brought for files .pt alone", m.SerializedFile)
	}
	v := newVersion(m.Name, m.Version, "torch")
	v.Manifest.Entry = m.SerializedFile
	v.Manifest.Options["handler"] = m.Handler
	v.signature([]serving.Tensor{{Name: "data", Type: serving.ElementType(serving.Blob)}}, []serving.Tensor{output})
	if m.Config != "" {
		v.note("%s is not read: `topsail version scale` sets the number of replicas, which it calls workers", m.Config)
	}
	if err := v.require(from, cmp.Or(m.Requirements, "requirements.txt"), "torch", "numpy", "pillow"); err != nil {
		return nil, err
	}
	return []*Version{v}, v.take(from, ".", func(name string) bool { return !strings.HasPrefix(name, "MAR-INF/") })
}
