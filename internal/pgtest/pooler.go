package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/freeport"
)

// Pooler is a PgBouncer in front of a server, with its defaults except PoolerOptions.
type Pooler struct {
	address string
	folder  string
	owner   *syscall.Credential
	process *exec.Cmd
	said    *output
	ended   chan struct{} // closed once the process is gone
	killed  bool          // by Kill
}

// PoolerOptions configure a pooler.
type PoolerOptions struct {
	// Mode is transaction, the default here, or session.
	Mode string
	// Size is how many connections to the server there are per database. Default 20.
	Size int
	// Settings are further lines of its section [pgbouncer].
	Settings []string
}

// poolerPackage is Debian's package of PgBouncer.
const poolerPackage = "pgbouncer"

// ErrNoPooler means that no PgBouncer was found. Its text gives the command that installs it.
var ErrNoPooler = errors.New("no PgBouncer was found: apt-get install " + poolerPackage)

func findPooler() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoPooler
}

// NewPooler starts a pooler in front of a server until the test ends, and returns the URL of the
// same database through it.
func NewPooler(t testing.TB, server string, options PoolerOptions) (p *Pooler, through string) {
	t.Helper()
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p, err = StartPooler(at, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if how := p.died(); how != "" {
			t.Error(how)
		}
		p.Stop()
	})
	at.Host = p.address
	return p, at.String()
}

// StartPooler starts a pooler in front of a server. Stop ends it.
func StartPooler(server *url.URL, options PoolerOptions) (*Pooler, error) {
	p := &Pooler{}
	var err error
	if p.owner, err = unprivileged(); err != nil {
		return nil, err
	}
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	p.address = fmt.Sprintf("127.0.0.1:%d", port)
	if p.folder, err = os.MkdirTemp("", "sluice-pooler-"); err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(p.folder, 0o755), os.WriteFile(p.config(), []byte(poolerConfig(server, port, options)), 0o644)); err != nil { //nolint:gosec // it runs as another user, and the server is to be thrown away
		return nil, err
	}
	if err := p.Start(); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

func poolerConfig(server *url.URL, port int, options PoolerOptions) string {
	if options.Mode == "" {
		options.Mode = "transaction"
	}
	if options.Size == 0 {
		options.Size = 20
	}
	database := fmt.Sprintf("* = host=%s port=%s user=%s", server.Hostname(), server.Port(), server.User.Username())
	if password, has := server.User.Password(); has {
		database += fmt.Sprintf(" password='%s'", password)
	}
	lines := append([]string{
		"[databases]",
		database,
		"[pgbouncer]", "listen_addr = 127.0.0.1", fmt.Sprintf("listen_port = %d", port), "unix_socket_dir =", "auth_type = any",
		"pool_mode = " + options.Mode, fmt.Sprintf("default_pool_size = %d", options.Size), "max_client_conn = 1000",
	}, options.Settings...)
	return strings.Join(lines, "\n") + "\n"
}

func (p *Pooler) config() string { return filepath.Join(p.folder, "pgbouncer.ini") }

// Start starts the pooler again after Kill, on the same port.
func (p *Pooler) Start() error {
	program, err := findPooler()
	if err != nil {
		return err
	}
	p.said, p.killed = &output{}, false
	p.process = exec.Command(program, p.config())
	p.process.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner, Setpgid: true}
	p.process.Stdout, p.process.Stderr = p.said, p.said
	if err := p.process.Start(); err != nil {
		return err
	}
	process, ended := p.process, make(chan struct{})
	p.ended = ended
	go func() {
		defer close(ended)
		_ = process.Wait() // its state records how it ended
	}()
	for deadline := time.Now().Add(30 * time.Second); ; {
		conn, err := net.DialTimeout("tcp", p.address, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ended:
			return fmt.Errorf("PgBouncer ended: %s: %s", process.ProcessState, p.said)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("PgBouncer does not answer: %w: %s", err, p.said)
		}
	}
}

// died returns how the pooler ended by itself. "": it did not.
func (p *Pooler) died() string {
	if p.killed {
		return ""
	}
	select {
	case <-p.ended:
		return fmt.Sprintf("PgBouncer ended by itself: %s: %s", p.process.ProcessState, p.said)
	default:
		return ""
	}
}

// Kill ends the pooler at once, as a crash would, and waits until its port is free.
func (p *Pooler) Kill() {
	if p.process != nil && p.process.Process != nil {
		p.killed = true
		_ = p.process.Process.Kill()
		<-p.ended
	}
}

// Stop ends the pooler and removes its files.
func (p *Pooler) Stop() {
	p.Kill()
	_ = os.RemoveAll(p.folder)
}

// output keeps the output of a process.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
