package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Server is one server process and what it takes to run it again. Its methods
// may be called by one goroutine at a time.
type Server struct {
	Name  string
	Addr  string // host:port of its API
	Grace time.Duration

	argv  []string
	log   string
	ready func(ctx context.Context, addr string) error

	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex // guards err
	err  error
}

// startWithin bounds the wait for a server to be ready.
const startWithin = 2 * time.Minute

// Start starts the server, on the data that it left, and waits until it is ready.
func (s *Server) Start(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(s.log), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Env = append(os.Environ(), folderVariable+"="+filepath.Dir(s.log)+"/")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	s.cmd, s.done = cmd, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		err := cmd.Wait()
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
	}(s.done)
	if err := s.awaitReady(ctx); err != nil {
		s.Kill()
		return fmt.Errorf("%s does not get ready: %w; its log is %s", s.Name, err, s.log)
	}
	return nil
}

func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		asking, stop := context.WithTimeout(ctx, 2*time.Second)
		err := s.ready(asking, s.Addr)
		stop()
		if err == nil {
			return nil
		}
		select {
		case <-poll.C:
		case <-s.done:
			s.mu.Lock()
			defer s.mu.Unlock()
			return fmt.Errorf("it ended: %w", s.err)
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// LogTail is the end of what the server wrote, for people who read a failure.
func (s *Server) LogTail() string {
	const most = 4 << 10
	written, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s wrote:\n%s\n", s.Name, written[max(0, len(written)-most):])
}

// PID is the process that runs; 0 before Start.
func (s *Server) PID() int {
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Running says whether the process lives.
func (s *Server) Running() bool {
	if s.done == nil {
		return false
	}
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// Stop ends the server in the orderly way, and after its Grace by force.
func (s *Server) Stop() {
	if !s.Running() {
		return
	}
	s.signal(syscall.SIGCONT)
	s.signal(syscall.SIGTERM)
	grace := s.Grace
	if grace == 0 {
		grace = 10 * time.Second
	}
	select {
	case <-s.done:
	case <-time.After(grace):
		s.Kill()
	}
}

// Kill ends the server at once, as a power cut does.
func (s *Server) Kill() {
	if s.Running() {
		s.signal(syscall.SIGKILL)
		<-s.done
	}
}

// Freeze stops the process where it is, and Thaw lets it go on.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

// signal goes to the server alone: what a Nomad client runs is not in its group.
func (s *Server) signal(sig syscall.Signal) {
	if s.Running() {
		_ = s.cmd.Process.Signal(sig) // it may just have ended
	}
}
