package imports

import (
	"fmt"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// elementType is what the Open Inference Protocol and Triton call one; texts are of the type text.
func elementType(name string, text serving.DType) (t serving.ElementType, err error) {
	if name == "BYTES" || name == "STRING" {
		return serving.ElementType(text), nil
	}
	ours := strings.ToLower(strings.NewReplacer("FP", "float", "BF", "bfloat").Replace(name))
	if t.UnmarshalText([]byte(ours)) != nil || serving.DType(t).Size() == 0 || strings.ToUpper(name) != name {
		return 0, fmt.Errorf("datatype %q is unknown", name)
	}
	return t, nil
}
