//go:build unix

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The files a guard inherits from its parent, besides standard output and error.
const (
	lifelineFD = 3
	reportFD   = 4
)

// RunGuard is the whole of a guard process: it runs the command args (what
// follows the guard prefix given to New) until that or the parent ends, leaves
// no process behind, and returns the exit status: the command's, or 128 and the
// signal that killed it, or 127 if it cannot start.
func RunGuard(args []string) int {
	// The command dies with the thread that starts it, and a locked one lasts.
	runtime.LockOSThread()
	if err := checkGuard(args); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		return 2
	}
	report := os.NewFile(reportFD, "report")
	// Caught before the start, so that no signal finds a guard that cannot pass it on.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	pid, err := startGuarded(args)
	if err != nil {
		fmt.Fprintln(report, "ended cannot start:", explainStart(err))
		return 127
	}
	fmt.Fprintln(report, "started", pid)
	status := watchGuarded(pid, signals)
	fmt.Fprintln(report, "ended", ending(status))
	return exitCode(status)
}

// checkGuard refuses to work without a parent that holds the other ends, and
// keeps our ends from the command.
func checkGuard(args []string) error {
	for _, fd := range []int{lifelineFD, reportFD} {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
			return errors.New("this is started by topsail for its own use, not by hand")
		}
		unix.CloseOnExec(fd)
	}
	if len(args) == 0 {
		return errors.New("the command is missing")
	}
	return adoptOrphans()
}

// startGuarded starts the command as the leader of a process group. It is reaped with all others
// in watchGuarded, and so never waited for alone.
func startGuarded(args []string) (pid int, err error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = groupLeader()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// watchGuarded passes signals on until the command has ended, by itself or
// because the parent is gone, and then kills what is left of it.
func watchGuarded(pid int, signals <-chan os.Signal) syscall.WaitStatus {
	ended := make(chan syscall.WaitStatus, 1)
	go func() { ended <- reapUntil(pid) }()
	orphaned := lifelineEnd()
	for {
		select {
		case s := <-signals:
			_ = unix.Kill(-pid, s.(syscall.Signal))
		case <-orphaned:
			orphaned = nil
			_ = unix.Kill(-pid, unix.SIGKILL)
		case status := <-ended:
			_ = unix.Kill(-pid, unix.SIGKILL) // all at once, before they can fork again
			killOrphans()
			return status
		}
	}
}

// lifelineEnd is closed when the parent is gone or has closed the lifeline.
func lifelineEnd() <-chan struct{} {
	end := make(chan struct{})
	go func() {
		defer close(end)
		_, _ = io.Copy(io.Discard, os.NewFile(lifelineFD, "lifeline"))
	}()
	return end
}

// reapUntil reaps children, adopted ones too, up to and including pid.
func reapUntil(pid int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		if got == pid || (err != nil && !errors.Is(err, unix.EINTR)) {
			return status
		}
	}
}
