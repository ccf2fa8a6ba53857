package servers

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// folderVariable is in the environment of every server, and of all that it starts:
// the folder of its data.
const folderVariable = "REAL_SERVERS_DIR"

// Leftovers are the processes that servers with their data below dir have started,
// and that did not end with them: a Nomad client leaves its tasks and helpers.
func Leftovers(dir string) []int {
	var pids []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if startedBelow(dir, filepath.Join("/proc", e.Name())) && Alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// startedBelow goes by the environment, and by the folder that a process works in:
// Redis writes its title over its environment.
func startedBelow(dir, proc string) bool {
	environ, err := os.ReadFile(filepath.Join(proc, "environ"))
	if err == nil && bytes.Contains(environ, []byte(folderVariable+"="+dir+"/")) {
		return true
	}
	cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
	return err == nil && strings.HasPrefix(cwd, dir+"/")
}

// Alive is false for a process that has ended, whether or not it was waited for.
func Alive(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	rest := b[bytes.LastIndexByte(b, ')')+1:]
	return len(rest) < 2 || rest[1] != 'Z'
}

const sweepWithin = 5 * time.Second

// Sweep ends the leftovers below dir, and takes away what was mounted there.
func Sweep(dir string) {
	deadline := time.Now().Add(sweepWithin)
	for {
		left := Leftovers(dir)
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have ended
		}
		time.Sleep(20 * time.Millisecond)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return // nothing is mounted where there is no such file
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			_ = syscall.Unmount(fields[1], syscall.MNT_DETACH)
		}
	}
}
