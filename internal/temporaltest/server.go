// Package temporaltest gives tests, benchmarks and demos a real Temporal server. The server is
// built from tools/temporal and listens on a loopback port, or is the one that SLUICE_TEST_TEMPORAL
// names.
//
// Begin with [Address], which tests share, or with [Start] for a [Server] that a test can end and
// resume. The package does not know Temporal's protocol, so packages that must not import Temporal
// may use it.
//
// Read next: package engine/temporal for the adapter.
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

// starting is how long a server may take until it is ready. A start takes 1 s, or 2.5 s to create
// its databases on PostgreSQL, and 100 times as long on a busy machine.
const starting = 10 * time.Minute

// Server is a Temporal server of this process. The server ends with the process, even after a
// crash.
type Server struct {
	// Address is host and port of its frontend. Resume keeps it.
	Address string
	// UI is the URL of its web UI. Empty: none.
	UI string
	// PID is its process.
	PID int

	program string
	options Options
	cmd     *exec.Cmd
	log     *tail
}

// Options configure a server.
type Options struct {
	// Port is the port of the frontend. 0: a free one.
	Port int
	// UIPort is the port of the web UI. 0: no UI.
	UIPort int
	// Store is where the server keeps its data: the path of a SQLite file, or the URL of a
	// PostgreSQL database. The server creates a missing database, and one with the suffix
	// `_visibility`. Empty: in memory, until the server ends.
	Store string
	// Namespaces are registered if they are missing, with the retention of closed runs. Empty:
	// `default` with 72 h. Retentions of seconds work, but Temporal deletes up to 30 min late
	// unless Dynamic sets history.retentionTimerJitterDuration=1s.
	Namespaces map[string]time.Duration
	// Dynamic are values of Temporal's dynamic configuration by key, in YAML or JSON. An unknown
	// key or value is an error.
	Dynamic map[string]string
}

// ErrNotReady means that a server did not start. Its text has the reason.
var ErrNotReady = errors.New("the Temporal server did not start")

// Start starts a server and waits until it takes work. If the server's program is missing, Start
// builds it. The end of ctx ends the build and the wait, but not a running server: Stop does.
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
		// The server's own parts wait for each other for some seconds only, which is too short on a
		// busy machine.
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
	// Its own process group: an interrupt from the terminal is for the processes that use the
	// server.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The server ends when this pipe is closed. The command holds it open.
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

// End asks the server to end, and waits for it.
func (s *Server) End() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// Halt kills the server, as a crash would, and waits for its end. Data in memory is lost.
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

// tail keeps the end of a server's log.
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
