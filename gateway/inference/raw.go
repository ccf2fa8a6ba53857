package inference

import (
	"fmt"

	"github.com/topsail-serving/topsail/serving"
)

// CheckRaw says what is wrong with the data of a value that came as bytes, or nil: they are as many as
// the shape needs, and texts end where they say. Errors are for clients.
func CheckRaw(v *serving.Value) error {
	n := serving.Elements(v.Shape)
	if size := v.DType.Size(); size > 0 {
		if len(v.Data) != n*size {
			return fmt.Errorf("it has %d bytes, and %s needs %d", len(v.Data), Text(v.DType, v.Shape), n*size)
		}
		return nil
	}
	data := v.Data
	for range n {
		var ok bool
		if _, data, ok = serving.NextElement(data); !ok {
			return fmt.Errorf("it ends before the last of %d elements", n)
		}
	}
	if len(data) > 0 {
		return fmt.Errorf("%d bytes follow the last of %d elements", len(data), n)
	}
	return nil
}
