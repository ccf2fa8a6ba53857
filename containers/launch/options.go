//go:build unix

package launch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// DefaultTimeout bounds all that comes before the start of a model.
const DefaultTimeout = 15 * time.Minute

// Options say what to run and where.
type Options struct {
	Bundle string // path of the archive; with Fetch and Digest: empty

	// Fetch gets the archive where the node has not unpacked it yet. The file is removed
	// afterwards.
	Fetch func(ctx context.Context) (path string, err error)

	Digest string // "sha256:…"; refuses an archive with another one, and spares reading it at every start
	Work   string // the folder for what is kept, made if there is none
	SDK    fs.FS  // holds the folder topsail
	Beside string // the folder of topsail-pmml.jar, where TOPSAIL_PMML_JAR of Environ does not name it

	// Pythons finds an interpreter, such as that of "3.11". Nil: on the PATH of Environ.
	Pythons func(minor string) (path string, ok bool)

	Log     io.Writer         // lines for people; nil: none
	Environ []string          // of the model, and of pip
	Timeout time.Duration     // 0: DefaultTimeout
	Exec    func(Image) error // instead of Image.Exec, which hands the locks on; nil: that
}

func (o Options) withDefaults() (Options, error) {
	var err error
	if o.Work, err = filepath.Abs(o.Work); err != nil { // the model has another working directory
		return o, fmt.Errorf("the work folder: %w", err)
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Pythons == nil {
		o.Pythons = PythonsIn(filepath.SplitList(variable(o.Environ, "PATH")))
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	return o, nil
}

// variable is a variable's value, or "".
func variable(environ []string, name string) string {
	value := ""
	for _, v := range environ {
		if rest, ok := strings.CutPrefix(v, name+"="); ok {
			value = rest // the last one counts
		}
	}
	return value
}

// with is the environment with a variable set.
func with(environ []string, name, value string) []string {
	return append(without(environ, name), name+"="+value)
}

// without is a copy of the environment that lacks a variable.
func without(environ []string, name string) []string {
	others := make([]string, 0, len(environ)+1)
	for _, v := range environ {
		if !strings.HasPrefix(v, name+"=") {
			others = append(others, v)
		}
	}
	return others
}
