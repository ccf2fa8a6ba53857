// Package python carries the Python SDK, so that a node needs nothing but Topsail's own
// binary to run a bundle.
package python

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed all:src/topsail
var sources embed.FS // written by the compiler alone

// SDK holds the folder "topsail", the package as Python imports it. What Python itself
// may have left in the sources, folders named __pycache__, is in it too and of no use.
func SDK() fs.FS {
	sdk, err := fs.Sub(sources, "src")
	if err != nil {
		panic(fmt.Sprintf("the SDK is not in the binary: %v", err)) // the compiler has put it there
	}
	return sdk
}
