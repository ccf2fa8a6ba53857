package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Where `make bench` installs servers by themselves: they need other libraries than our package.
const (
	tritonPython = "build/python/triton/bin/python"
	kservePython = "build/python/kserve/bin/python"
)

//go:embed tensors_mosec.py
var tensorsMosecPython []byte

//go:embed tensors_kserve.py
var tensorsKServePython []byte

//go:embed tensors_triton.py
var tensorsTritonPython []byte

//go:embed tensors.pbtxt
var tensorsTritonConfig []byte

// peerFiles writes files of a server into a folder.
func (b *bench) peerFiles(files map[string][]byte) (dir string, err error) {
	if dir, err = os.MkdirTemp(b.dir, "peer"); err != nil {
		return "", err
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// tensorsMosec starts mosec with one worker.
func (b *bench) tensorsMosec(ctx context.Context) (*target, error) {
	dir, err := b.peerFiles(map[string][]byte{"tensors.py": []byte(tensorsPython), "tensors_mosec.py": tensorsMosecPython})
	if err != nil {
		return nil, err
	}
	t, err := b.mosecServer(ctx, filepath.Join(dir, "tensors_mosec.py"))
	if err != nil {
		return nil, err
	}
	t.whole, t.request = true, rawTensor()
	return t, nil
}

// tensorsKServe starts KServe, whose model is in the process of its server.
func (b *bench) tensorsKServe(ctx context.Context) (*target, error) {
	program, err := installed(ctx, kservePython, "KServe", "import kserve")
	if err != nil {
		return nil, err
	}
	dir, err := b.peerFiles(map[string][]byte{"tensors.py": []byte(tensorsPython), "tensors_kserve.py": tensorsKServePython})
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	c, err := b.family.start("KServe", exec.CommandContext(ctx, program, filepath.Join(dir, "tensors_kserve.py"), "--http_port", strconv.Itoa(ports[0])))
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/v1/models/%s:predict", ports[0], appName)
	return &target{name: "KServe", url: url, children: []*child{c}, whole: true, request: rawTensor()}, nil
}

// installed is the path of a Python that can do something.
func installed(ctx context.Context, python, what, check string) (program string, err error) {
	if out, err := exec.CommandContext(ctx, python, "-c", check).CombinedOutput(); err != nil {
		return "", fmt.Errorf("there is no %s at %s: run `make bench`, which installs it: %w: %s", what, python, err, lastLine(out))
	}
	return filepath.Abs(python)
}

// tritonFiles is where Triton is: what PyTriton's package has, and the library of the Python that its models run in.
type tritonFiles struct {
	Package   string `json:"package"`
	Version   string `json:"version"` // of Python
	Libraries string `json:"libraries"`
}

const findTriton = `
import importlib.util, json, os, sys, sysconfig
package = os.path.dirname(importlib.util.find_spec("pytriton").origin)
print(json.dumps({"package": package, "version": "%d.%d" % sys.version_info[:2], "libraries": sysconfig.get_config_var("LIBDIR")}))
`

// tensorsTriton starts Triton's server with one instance of the model.
func (b *bench) tensorsTriton(ctx context.Context) (*target, error) {
	program, err := installed(ctx, tritonPython, "Triton", findTriton)
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, program, "-c", findTriton).Output()
	if err != nil {
		return nil, err
	}
	var files tritonFiles
	if err := json.Unmarshal(out, &files); err != nil {
		return nil, err
	}
	dir, err := b.peerFiles(map[string][]byte{
		"models/bench/config.pbtxt": tensorsTritonConfig, "models/bench/1/model.py": tensorsTritonPython, "models/bench/1/tensors.py": []byte(tensorsPython),
	})
	if err != nil {
		return nil, err
	}
	if err := files.link(dir); err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(files.Package, "tritonserver/bin/tritonserver"),
		"--model-repository", filepath.Join(dir, "models"), "--backend-directory", filepath.Join(dir, "backends"),
		"--backend-config", "python,shm-region-prefix-name="+b.sharedPrefix(),
		"--http-address", "127.0.0.1", "--http-port", strconv.Itoa(ports[0]),
		"--allow-grpc", "false", "--allow-metrics", "false", "--log-info", "false", "--log-warning", "false")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), // models see the packages of the first python3 in the path
		"PATH="+filepath.Dir(program)+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"LD_LIBRARY_PATH="+filepath.Join(filepath.Dir(files.Package), "nvidia_pytriton.libs")+string(filepath.ListSeparator)+files.Libraries)
	c, err := b.family.start("Triton", cmd)
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/v2/models/%s/infer", ports[0], appName)
	return &target{name: "Triton", url: url, children: []*child{c}, whole: true, request: inferTensor()}, nil
}

// link makes the folder of the Python backend: its library, and what runs a model in this version of Python.
func (f tritonFiles) link(dir string) error {
	to := filepath.Join(dir, "backends", "python")
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	var errs []error
	for _, from := range []string{
		"backends/python/libtriton_python.so", "backends/python/triton_python_backend_utils.py",
		"python_backend_stubs/" + f.Version + "/triton_python_backend_stub",
	} {
		path := filepath.Join(f.Package, "tritonserver", from)
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.Symlink(path, filepath.Join(to, filepath.Base(from))))
	}
	return errors.Join(errs...)
}

// sharedPrefix begins the names of the memory that Triton shares with its models.
func (b *bench) sharedPrefix() string { return filepath.Base(b.dir) }

// freeShared removes such memory of servers that were killed, and so have not.
func (b *bench) freeShared() {
	left, _ := filepath.Glob(filepath.Join("/dev/shm", b.sharedPrefix()+"*")) // the pattern is valid
	for _, file := range left {
		_ = os.Remove(file) // it is another file of a tmpfs at worst
	}
}
