package nvidia

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Device is a GPU that CUDA can use: a whole one, or a slice of one (MIG).
type Device struct {
	UUID     string
	Name     string // of the product, and of a slice " MIG " and its profile, as Nomad's plugin has it
	MemoryMB int    // 0: unknown
	index    string // of the whole GPU
	gpu      string // its UUID
}

// List is the devices of this machine that CUDA_VISIBLE_DEVICES leaves. It takes at most
// listWithin, and its errors say what to do.
func List(ctx context.Context) ([]Device, error) {
	ctx, stop := context.WithTimeout(ctx, listWithin)
	defer stop()
	text, err := ask(ctx, "-L")
	if err != nil {
		return nil, err
	}
	memory, err := ask(ctx, "--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits")
	if err != nil {
		return nil, err
	}
	return visible(parse(text, memory), os.LookupEnv), nil
}

const listWithin = 20 * time.Second // it may have to wake the driver

// ask runs nvidia-smi.
func ask(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "nvidia-smi", args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err == nil {
		return string(out), nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("nvidia-smi, which finds them, is missing: install NVIDIA's driver, deploy it to a cluster, or leave the GPUs out, with device=auto where the model says cuda")
	}
	said := out
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		said = exit.Stderr
	}
	first, _, _ := bytes.Cut(bytes.TrimSpace(said), []byte("\n"))
	return "", fmt.Errorf("nvidia-smi %s fails: %s: check NVIDIA's driver", args[0], cmp.Or(string(first), err.Error()))
}

var (
	line    = regexp.MustCompile(`(?m)^(?:GPU (\d+): (.*)|\s+MIG (\S+)\s+Device +\d+:) \(UUID: *([^)\s]+)\)`)
	profile = regexp.MustCompile(`^(?:\d+c\.)?\d+g\.(\d+)gb`)
)

// parse reads what nvidia-smi lists. A GPU that has slices can be used by them only.
func parse(list, memory string) []Device {
	var devices []Device
	megabytes := memoryOf(memory)
	var whole Device
	for _, found := range line.FindAllStringSubmatch(list, -1) {
		index, name, slice, uuid := found[1], found[2], found[3], found[4]
		if slice == "" {
			whole = Device{UUID: uuid, Name: name, MemoryMB: megabytes[uuid], index: index, gpu: uuid}
			devices = append(devices, whole)
			continue
		}
		if last := len(devices) - 1; last >= 0 && devices[last].UUID == whole.UUID {
			devices = devices[:last]
		}
		devices = append(devices, Device{UUID: uuid, Name: whole.Name + " MIG " + slice, MemoryMB: sliceMemory(slice), index: whole.index, gpu: whole.gpu})
	}
	return devices
}

// memoryOf reads lines of a GPU and its MiB.
func memoryOf(text string) map[string]int {
	memory := map[string]int{}
	for row := range strings.Lines(text) {
		uuid, amount, _ := strings.Cut(row, ",")
		memory[strings.TrimSpace(uuid)], _ = strconv.Atoi(strings.TrimSpace(amount)) // some chips say [N/A]
	}
	return memory
}

// sliceMemory is what a slice has at the least, in MiB: profiles name it in GB.
func sliceMemory(name string) int {
	found := profile.FindStringSubmatch(name)
	if found == nil {
		return 0
	}
	gb, _ := strconv.Atoi(found[1])
	return int(int64(gb) * 1e9 >> 20)
}

// visible is what CUDA_VISIBLE_DEVICES leaves: it names GPUs by their numbers, or by the
// beginning of their UUIDs.
func visible(devices []Device, lookup func(string) (string, bool)) []Device {
	named, restricted := lookup("CUDA_VISIBLE_DEVICES")
	if !restricted {
		return devices
	}
	var left []Device
	for _, d := range devices {
		for name := range strings.SplitSeq(named, ",") {
			if name = strings.TrimSpace(name); name != "" && (name == d.index || strings.HasPrefix(d.UUID, name) || strings.HasPrefix(d.gpu, name)) {
				left = append(left, d)
				break
			}
		}
	}
	return left
}

// fits says whether a device is one of those wanted.
func (d Device) fits(want serving.GPU) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(want.Device, "nvidia/"), "gpu"), "/")
	return d.MemoryMB >= want.MemoryMB && (name == "" || name == d.Name || strings.HasSuffix(d.Name, " MIG "+name))
}

// Wanted says whether it is NVIDIA's GPUs that are wanted, and any at all.
func Wanted(want serving.GPU) bool {
	d := want.Device
	return want.Count > 0 && (d == "" || d == "gpu" || d == "nvidia/gpu" || strings.HasPrefix(d, "nvidia/gpu/"))
}

// MemoryByProcess is how many bytes of GPUs' memory processes have, by process id. It takes at most
// listWithin. Inside a container without the host's process ids, NVIDIA's driver tells none.
func MemoryByProcess(ctx context.Context) (map[int]int64, error) {
	ctx, stop := context.WithTimeout(ctx, listWithin)
	defer stop()
	text, err := ask(ctx, "--query-compute-apps=pid,used_gpu_memory", "--format=csv,noheader,nounits")
	if err != nil {
		return nil, err
	}
	all := map[int]int64{}
	for row := range strings.Lines(text) {
		process, amount, _ := strings.Cut(row, ",")
		pid, err := strconv.Atoi(strings.TrimSpace(process))
		megabytes, _ := strconv.ParseInt(strings.TrimSpace(amount), 10, 64) // some drivers say [N/A]
		if err == nil {
			all[pid] += megabytes << 20 // once for each GPU
		}
	}
	return all, nil
}
