//go:build unix

package launch

import (
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// drain is how long a command's output is waited for after the command has ended.
const drain = 5 * time.Second

// command runs a program to its end. With ctx all processes end that it has started. If
// this process is killed they go on, and hold the lock l, which may be nil, until they end.
func (o *Options) command(ctx context.Context, l *lock, out io.Writer, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = with(without(o.Environ, "PYTHONPATH"), "PYTHONNOUSERSITE", "1") // packages from elsewhere would pass for installed
	cmd.Stdout, cmd.Stderr = out, out
	if l != nil {
		cmd.ExtraFiles = []*os.File{l.file}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = drain
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
