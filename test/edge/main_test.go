//go:build edge

package edge

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// programs are built once: the binary under attack, and this one, which is the models, too.
var programs struct{ topsail, model string }

// results are what came of the attacks so far.
var results []result

// program and bare are for a binary of another commit.
var (
	program = flag.String("program", "", "the topsail to attack; by default it is built")
	bare    = flag.Bool("bare", false, "leave out settings that an older topsail does not know; with -run 'Plain|TLS|Bounds', as it has not all doors")
)

func TestMain(m *testing.M) {
	switch kind := os.Getenv(modelKind); kind {
	case "":
	case referenceKind:
		os.Exit(serveReference())
	default:
		os.Exit(serveModel(kind))
	}
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "topsail-edge")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if programs.model, err = os.Executable(); err != nil {
		return 1, err
	}
	if programs.topsail = *program; programs.topsail == "" {
		programs.topsail = filepath.Join(dir, "topsail")
		if out, err := exec.Command("go", "build", "-o", programs.topsail, "github.com/topsail-serving/topsail/cmd/topsail").CombinedOutput(); err != nil {
			return 1, fmt.Errorf("go build github.com/topsail-serving/topsail/cmd/topsail: %w\n%s", err, out)
		}
	}
	code = m.Run()
	printResults(results)
	return code, nil
}
