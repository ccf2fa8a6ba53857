package nvidia

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

const (
	listed = `GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aaa)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-bbb)
  MIG 1g.10gb     Device  0: (UUID: MIG-b0)
  MIG 3g.40gb     Device  1: (UUID: MIG-b1)
GPU 2: NVIDIA L4 (UUID: GPU-ccc)
`
	memories = "GPU-aaa, 81920\nGPU-bbb, 81920\nGPU-ccc, 23034\n"
)

var all = []Device{
	{UUID: "GPU-aaa", Name: "NVIDIA A100-SXM4-80GB", MemoryMB: 81920, index: "0", gpu: "GPU-aaa"},
	{UUID: "MIG-b0", Name: "NVIDIA A100-SXM4-80GB MIG 1g.10gb", MemoryMB: 9536, index: "1", gpu: "GPU-bbb"},
	{UUID: "MIG-b1", Name: "NVIDIA A100-SXM4-80GB MIG 3g.40gb", MemoryMB: 38146, index: "1", gpu: "GPU-bbb"},
	{UUID: "GPU-ccc", Name: "NVIDIA L4", MemoryMB: 23034, index: "2", gpu: "GPU-ccc"},
}

// nvidiaSMI puts a program of that name on PATH, and nothing else but a shell's tools.
func nvidiaSMI(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script), 0o700))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

func TestList(t *testing.T) {
	nvidiaSMI(t, "case $1 in\n-L) cat <<E\n"+listed+"E\n;;\n*) cat <<E\n"+memories+"E\n;;\nesac\n")
	for named, want := range map[string][]Device{
		"GPU-a":    all[:1],
		"1":        all[1:3],
		"MIG-b1,2": all[2:],
		"GPU-bbb":  all[1:3],
		"":         nil,
		"-1":       nil,
	} {
		t.Setenv("CUDA_VISIBLE_DEVICES", named)
		if got, err := List(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("CUDA_VISIBLE_DEVICES=%s leaves %+v, error %v", named, got, err)
		}
	}
	os.Unsetenv("CUDA_VISIBLE_DEVICES")
	if got, err := List(t.Context()); err != nil || !slices.Equal(got, all) {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestListSaysWhatIsWrong(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := List(t.Context()); err == nil || !strings.Contains(err.Error(), "nvidia-smi, which finds them, is missing") {
		t.Errorf("without nvidia-smi: %v", err)
	}
	nvidiaSMI(t, "echo 'NVIDIA-SMI has failed because it could not communicate with the driver'; exit 9")
	if _, err := List(t.Context()); err == nil || !strings.Contains(err.Error(), "could not communicate with the driver: check") {
		t.Errorf("one that fails: %v", err)
	}
}

func TestWanted(t *testing.T) {
	for device, want := range map[string]bool{"": true, "gpu": true, "nvidia/gpu": true, "nvidia/gpu/1g.10gb": true, "amd/gpu": false, "tpu": false} {
		if Wanted(serving.GPU{Count: 1, Device: device}) != want {
			t.Errorf("%q: wanted %v", device, !want)
		}
	}
	if Wanted(serving.GPU{}) {
		t.Error("no GPU is wanted")
	}
}

func TestPoolGivesWhatFits(t *testing.T) {
	for _, test := range []struct {
		want serving.GPU
		got  []string
		says string
	}{
		{serving.GPU{Count: 1}, []string{"MIG-b0"}, ""},
		{serving.GPU{Count: 1, MemoryMB: 20000}, []string{"GPU-ccc"}, ""},
		{serving.GPU{Count: 1, Device: "nvidia/gpu/NVIDIA L4"}, []string{"GPU-ccc"}, ""},
		{serving.GPU{Count: 1, Device: "nvidia/gpu/3g.40gb"}, []string{"MIG-b1"}, ""},
		{serving.GPU{Count: 1, Device: "nvidia/gpu/NVIDIA A100-SXM4-80GB MIG 1g.10gb"}, []string{"MIG-b0"}, ""},
		{serving.GPU{Count: 2, MemoryMB: 30000}, []string{"MIG-b1", "GPU-aaa"}, ""},
		{serving.GPU{Count: 5}, nil, "it needs 5 GPUs, and this machine has 4: request"},
		{serving.GPU{Count: 2, MemoryMB: 60000}, nil, "it needs 2 GPUs with 60000 MiB, and this machine has 1 such: request"},
	} {
		ctx, stop := context.WithCancel(t.Context())
		said := ""
		got, err := NewPool(func(context.Context) ([]Device, error) { return slices.Clone(all), nil }).Take(ctx, "m:1/0", test.want, func(err error) { said = err.Error(); stop() })
		if !slices.Equal(got, test.got) || (err != nil) != (test.got == nil) || !strings.HasPrefix(said, test.says) || test.says == "" && said != "" {
			t.Errorf("%+v: got %v, error %v, said %q", test.want, got, err, said)
		}
		stop()
	}
}

func TestTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var there atomic.Bool
		absent := errors.New("nvidia-smi, which finds them, is missing")
		p := NewPool(func(context.Context) ([]Device, error) {
			if !there.Load() {
				return nil, absent
			}
			return slices.Clone(all[:3]), nil
		})
		type taken struct {
			uuids []string
			err   error
		}
		take := func(ctx context.Context, name string) (<-chan taken, *error) {
			done, last := make(chan taken, 1), new(error)
			go func() {
				uuids, err := p.Take(ctx, name, serving.GPU{Count: 2}, func(err error) { *last = err })
				done <- taken{uuids, err}
			}()
			synctest.Wait()
			return done, last
		}
		first, why := take(t.Context(), "m:1/0")
		if !errors.Is(*why, absent) {
			t.Errorf("without GPUs: %v", *why)
		}
		there.Store(true)
		got := <-first // lookAgain later
		if got.err != nil || len(got.uuids) != 2 {
			t.Fatalf("got %+v", got)
		}
		second, why := take(t.Context(), "m:1/1")
		if !errors.Is(*why, ErrInUse) || !strings.Contains((*why).Error(), "by m:1/0") {
			t.Errorf("while they are in use: %v", *why)
		}
		ctx, stop := context.WithCancel(t.Context())
		third, _ := take(ctx, "m:1/2")
		stop()
		if got := <-third; got.err == nil {
			t.Errorf("got %+v after its end", got)
		}
		p.Give("m:1/0")
		synctest.Wait()
		select {
		case got := <-second:
			if got.err != nil || len(got.uuids) != 2 {
				t.Errorf("got %+v", got)
			}
		default:
			t.Error("who waits gets nothing at once of what is given back")
		}
	})
}

// No GPU belongs to two, whoever takes and gives, and whoever can have what it wants has it.
func TestPoolProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPool(func(context.Context) ([]Device, error) { return slices.Clone(all), nil })
		has := map[string][]string{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "replica")
			if has[name] != nil {
				p.Give(name)
				delete(has, name)
				continue
			}
			want := serving.GPU{Count: rapid.IntRange(1, 5).Draw(t, "count")}
			free := len(all)
			for _, uuids := range has {
				free -= len(uuids)
			}
			uuids, _, err := p.take(context.Background(), name, want)
			if (err == nil) != (want.Count <= free) {
				t.Fatalf("%d of %d free: %v", want.Count, free, err)
			}
			if err == nil {
				has[name] = uuids
			}
			seen := map[string]string{}
			for name, uuids := range has {
				for _, uuid := range uuids {
					if other := seen[uuid]; other != "" {
						t.Fatalf("%s and %s both have %s", name, other, uuid)
					}
					seen[uuid] = name
				}
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(listed, memories)
	f.Add("  MIG 1g.10gb     Device  0: (UUID: MIG-b0)\n", "GPU-a,[N/A]\n")
	f.Fuzz(func(t *testing.T, list, memory string) {
		for _, d := range parse(list, memory) {
			if d.UUID == "" {
				t.Errorf("%+v has no UUID", d)
			}
		}
	})
}

func TestMemoryByProcess(t *testing.T) {
	nvidiaSMI(t, "echo '71, 1024'\necho '72, 300'\necho '71, 24'\necho '73, [N/A]'\necho 'No running processes'\n")
	got, err := MemoryByProcess(t.Context())
	if err != nil || len(got) != 3 || got[71] != 1048<<20 || got[72] != 300<<20 || got[73] != 0 {
		t.Errorf("%v, %v", got, err)
	}
	nvidiaSMI(t, "echo 'Unable to determine the device handle' >&2; exit 15\n")
	if got, err := MemoryByProcess(t.Context()); err == nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}
