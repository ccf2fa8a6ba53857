//go:build unix

package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// drainLimit is how long output is read after the guard is gone. Its end comes
// at once, unless the guard was killed and a process it lost holds the pipe.
const drainLimit = time.Second

// run is one guard with its command, seen from the parent.
type run struct {
	started  chan int // the command's pid; closed when no process is left
	reason   string   // why the command ended; read it after started is closed
	guard    *exec.Cmd
	lifeline *os.File
	out      *output
}

// start starts a guard with the command. The caller receives from started until
// it is closed.
func start(spec Spec, guard []string, out *output) (*run, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	if len(guard) == 0 {
		return nil, errors.New("guard: its command line is empty: give this executable and its guard subcommand")
	}
	lifeline, report, stdout, stderr, err := openPipes()
	if err != nil {
		return nil, err
	}
	theirs := []*os.File{lifeline.r, report.w, stdout.w, stderr.w}
	ours := []*os.File{lifeline.w, report.r, stdout.r, stderr.r}
	defer closeAll(theirs)
	if err := out.open(spec.LogFile, spec.LogLimit); err != nil {
		closeAll(ours)
		return nil, err
	}
	cmd := guardCommand(spec, guard)
	cmd.Stdout, cmd.Stderr = stdout.w, stderr.w
	cmd.ExtraFiles = []*os.File{lifelineFD - 3: lifeline.r, reportFD - 3: report.w}
	if err := cmd.Start(); err != nil {
		closeAll(ours)
		out.close()
		return nil, fmt.Errorf("guard: %w", err)
	}
	r := &run{started: make(chan int, 1), guard: cmd, lifeline: lifeline.w, out: out}
	go r.watch(report.r, stdout.r, stderr.r)
	return r, nil
}

func guardCommand(spec Spec, guard []string) *exec.Cmd {
	argv := slices.Concat(guard, spec.Argv)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = spec.Dir
	cmd.Env = append(cmd.Environ(), spec.Env...)
	// Ctrl-C in a terminal goes to the parent's group: the parent decides what ends when.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// terminate asks the command to end. A guard that has ended already is not an error.
func (r *run) terminate() { _ = r.guard.Process.Signal(unix.SIGTERM) }

// kill ends the command and all it started, without asking.
func (r *run) kill() { _ = r.lifeline.Close() }

// watch follows the run to its end.
func (r *run) watch(report, stdout, stderr *os.File) {
	defer close(r.started)
	defer closeAll([]*os.File{r.lifeline, stdout, stderr})
	defer r.out.close()
	var copying sync.WaitGroup
	copying.Go(func() { r.out.copyFrom(stdout) })
	copying.Go(func() { r.out.copyFrom(stderr) })

	pid := r.readReport(report)
	if r.reason == "" && pid > 0 { // the guard was killed before it could clean up
		_ = unix.Kill(-pid, unix.SIGKILL)
	}
	limit := time.Now().Add(drainLimit)
	_ = stdout.SetReadDeadline(limit)
	_ = stderr.SetReadDeadline(limit)
	copying.Wait()
	_ = r.guard.Wait() // the report says more than the exit status does
	if r.reason == "" {
		r.reason = "guard: " + ending(r.guard.ProcessState.Sys().(syscall.WaitStatus))
	}
}

// readReport reads what the guard says until it is gone, and returns the
// command's pid, 0 if it was not started.
func (r *run) readReport(report *os.File) (pid int) {
	defer report.Close() // a guard that still writes must not wait for us
	lines := bufio.NewScanner(report)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "started":
			pid, _ = strconv.Atoi(rest)
			r.started <- pid
		case "ended":
			r.reason = rest
		}
	}
	return pid
}

type pipe struct{ r, w *os.File }

// openPipes opens the pipes between parent and guard, all or none. The files
// close on exec: no other child of the parent can hold a lifeline open.
func openPipes() (lifeline, report, stdout, stderr pipe, err error) {
	var open []*os.File
	for _, p := range []*pipe{&lifeline, &report, &stdout, &stderr} {
		if p.r, p.w, err = os.Pipe(); err != nil {
			closeAll(open)
			return pipe{}, pipe{}, pipe{}, pipe{}, fmt.Errorf("pipe: %w", err)
		}
		open = append(open, p.r, p.w)
	}
	return lifeline, report, stdout, stderr, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
