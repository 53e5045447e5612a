// Package temporaltest gives tests, benchmarks and demos a real Temporal server: one of its own on a
// loopback port, built from tools/temporal, or the one that SLUICE_TEST_TEMPORAL names. It knows nothing
// of Temporal's protocol, so that it can be imported where Temporal must not be.
package temporaltest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-queue/sluice/internal/freeport"
)

// starting is how long a server may take until it is ready. It needs a second, or 2.5 s to make its
// databases on PostgreSQL, and on a busy machine a hundred times as long.
const starting = 10 * time.Minute

// Server is a Temporal server of our own. It ends with the process that started it, however that ends.
type Server struct {
	// Address is host and port of its frontend, the same after Resume.
	Address string
	// UI is the URL of its web UI; empty: none.
	UI string
	// PID is its process.
	PID int

	program string
	options Options
	cmd     *exec.Cmd
	log     *tail
}

// Options adjust a server.
type Options struct {
	// Port is that of the frontend. 0: a free one.
	Port int
	// UIPort is that of the web UI. 0: no UI.
	UIPort int
	// Store is where it keeps everything: the path of a SQLite file, or the URL of a PostgreSQL database,
	// which is made where it is missing, together with one of the same name and «_visibility». Empty:
	// in memory, gone when it ends.
	Store string
	// Namespaces are registered where they are missing, with how long they keep closed runs. Empty:
	// «default» with 72 hours. Retentions of seconds are fine, but Temporal deletes up to half an hour
	// late unless Dynamic says history.retentionTimerJitterDuration=1s.
	Namespaces map[string]time.Duration
	// Dynamic are values of Temporal's dynamic configuration, in YAML or JSON, by key. A key or value that
	// Temporal does not know is refused.
	Dynamic map[string]string
}

// ErrNotReady says that a server did not start; its text has the reason.
var ErrNotReady = errors.New("the Temporal server did not start")

// Start builds the server's program where it is missing, starts it and waits until it takes work. The
// end of ctx ends the building and the waiting, not the server that runs: Stop does.
func Start(ctx context.Context, options Options) (*Server, error) {
	program, err := Install(ctx)
	if err != nil {
		return nil, err
	}
	if options.Port == 0 {
		if options.Port, err = freeport.Find(); err != nil {
			return nil, err
		}
	}
	s := &Server{program: program, options: options}
	if err := s.Resume(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Resume starts the server again after End or Halt, on the same port and the same store.
func (s *Server) Resume(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	for {
		err := s.resume(ctx)
		// The server's own parts wait for each other for some seconds only: too short on a busy machine.
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
			return err
		}
	}
}

// resume starts the server once, and waits until it is ready or gives up.
func (s *Server) resume(ctx context.Context) error {
	s.log = &tail{}
	s.cmd = exec.Command(s.program, s.options.flags()...)
	s.cmd.Stderr = s.log
	// A group of its own: an interrupt from the terminal is for those who use it.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The server ends when this pipe is closed; the command holds it.
	if _, err := s.cmd.StdinPipe(); err != nil {
		return err
	}
	output, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.PID = s.cmd.Process.Pid
	stopWaiting := context.AfterFunc(ctx, func() { _ = s.cmd.Process.Kill() })
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if !stopWaiting() || err != nil {
		_ = s.Halt()
		return fmt.Errorf("%w: %s", errors.Join(ErrNotReady, context.Cause(ctx)), strings.TrimSpace(s.log.String()))
	}
	var said struct{ Address, UI string }
	if err := json.Unmarshal(line, &said); err != nil {
		_ = s.Halt()
		return fmt.Errorf("%w: it said %q", ErrNotReady, line)
	}
	s.Address, s.UI = said.Address, said.UI
	return nil
}

// End asks the server to end and waits until it has.
func (s *Server) End() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// Halt kills the server, as a crash would, and waits until it is gone. What is in memory is lost.
func (s *Server) Halt() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := s.cmd.Wait(); !errors.As(err, &exit) {
		return err
	}
	return nil
}

// Stop ends the server for good. Its files and databases stay.
func (s *Server) Stop() { _ = s.Halt() }

func (o Options) flags() []string {
	flags := []string{"-end-with-input", fmt.Sprintf("-port=%d", o.Port), fmt.Sprintf("-ui-port=%d", o.UIPort)}
	if o.Store != "" {
		flags = append(flags, "-store="+o.Store)
	}
	for name, retention := range o.Namespaces {
		flags = append(flags, fmt.Sprintf("-namespace=%s=%s", name, retention))
	}
	for key, value := range o.Dynamic {
		flags = append(flags, "-dynamic="+key+"="+value)
	}
	return flags
}

// tail keeps the end of what a server logs.
type tail struct {
	mutex sync.Mutex
	text  []byte
}

const tailBytes = 8 << 10

func (t *tail) Write(text []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(text), nil
}

func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return string(t.text)
}
