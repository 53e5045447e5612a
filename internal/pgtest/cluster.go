// Package pgtest gives tests, benchmarks and demos a real PostgreSQL: a throw-away cluster on a
// free port, or the server that SLUICE_TEST_POSTGRES names.
//
// Begin with [NewDatabase] for a test's empty database; call [Main] from TestMain, so that the
// cluster stops. A [Template] is quicker if many tests need the same contents. [Start] makes a
// [Cluster] that a test can crash, replicate or promote, and [NewPooler] puts PgBouncer in front of
// a server.
//
// Read next: package internal/litetest for SQLite.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-queue/sluice/internal/freeport"
)

// Env is the variable with the URL of a server to use instead of a throw-away cluster. Its role
// must be allowed to create databases.
const Env = "SLUICE_TEST_POSTGRES"

// Cluster is a throw-away PostgreSQL server.
type Cluster struct {
	// URL is the URL of its database postgres, as the superuser.
	URL string
	// PID is its first process.
	PID int

	bin    string
	folder string
	owner  *syscall.Credential
	port   int
	// environment is added to this process's environment for its programs.
	environment []string
}

// Options configure a cluster.
type Options struct {
	// Durable keeps fsync and full page writes on, as benchmarks need. Other clusters are marked as
	// throw-away, so that `sluice doctor` accepts them.
	Durable bool
	// Port is the port to listen on if it is free. 0: any free port.
	Port int
	// Settings are further lines for postgresql.conf.
	Settings []string
	// Clock lets SetClock set the clock of the server, and of no other program.
	Clock bool
}

// ErrNoPostgres means that no PostgreSQL was found. Its text gives the command that installs it.
var ErrNoPostgres = errors.New(`no PostgreSQL was found: install it with

    apt-get install postgresql     (Debian, Ubuntu)
    brew install postgresql@17     (macOS)

or name a server whose role may create databases in ` + Env)

// Start makes a cluster and starts it. Stop ends it and removes its data.
func Start(options Options) (*Cluster, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin}
	if err := c.start(options); err != nil {
		c.Stop()
		return nil, fmt.Errorf("start a throw-away PostgreSQL from %s: %w", bin, err)
	}
	return c, nil
}

func (c *Cluster) start(options Options) error {
	var err error
	if c.owner, err = unprivileged(); err != nil {
		return err
	}
	if err := c.makeFolder(); err != nil {
		return err
	}
	if err := c.run("initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return err
	}
	if options.Clock {
		if err := c.fakeClock(); err != nil {
			return err
		}
	}
	if c.port, err = freeport.Prefer(options.Port); err != nil {
		return err
	}
	lines := []string{
		fmt.Sprintf("port = %d", c.port), "listen_addresses = '127.0.0.1'", "unix_socket_directories = ''",
		"max_connections = 200", "shared_buffers = 256MB", "max_wal_size = 4GB", "log_min_messages = fatal",
	}
	if !options.Durable {
		lines = append(lines, "fsync = off", "full_page_writes = off", "synchronous_commit = off", "sluice.throwaway = on",
			"max_connections = 1000") // tests of several packages share it
	}
	lines = append(lines, options.Settings...)
	if err := c.configure(lines...); err != nil {
		return err
	}
	c.URL = c.address()
	return c.Resume()
}

// Standby starts a server that follows this one by streaming replication, under a name. Stop ends
// it and removes its data.
func (c *Cluster) Standby(name string) (*Cluster, error) {
	s := &Cluster{bin: c.bin, owner: c.owner}
	if err := s.follow(c, name); err != nil {
		s.Stop()
		return nil, fmt.Errorf("start a standby of the throw-away PostgreSQL: %w", err)
	}
	return s, nil
}

func (c *Cluster) follow(primary *Cluster, name string) error {
	if err := c.makeFolder(); err != nil {
		return err
	}
	from := fmt.Sprintf("host=127.0.0.1 port=%d user=postgres application_name=%s", primary.port, name)
	if err := c.run("pg_basebackup", "-D", c.data(), "-d", from, "-R", "-X", "stream", "-c", "fast", "--no-sync"); err != nil {
		return err
	}
	var err error
	if c.port, err = freeport.Find(); err != nil {
		return err
	}
	if err := c.configure(fmt.Sprintf("port = %d", c.port)); err != nil {
		return err
	}
	c.URL = c.address()
	return c.Resume()
}

// Promote makes a standby writable.
func (c *Cluster) Promote() error {
	return c.run("pg_ctl", "-D", c.data(), "-w", "promote")
}

// Address is the host and the port.
func (c *Cluster) Address() string { return fmt.Sprintf("127.0.0.1:%d", c.port) }

func (c *Cluster) address() string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", c.Address())
}

// configure adds lines to postgresql.conf. The last line for a setting counts.
func (c *Cluster) configure(lines ...string) error {
	conf, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = conf.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, conf.Close())
}

// makeFolder makes the server's folder, owned by the user that it runs as.
func (c *Cluster) makeFolder() (err error) {
	if c.folder, err = os.MkdirTemp("", "sluice-postgres-"); err != nil || c.owner == nil {
		return err
	}
	return os.Chown(c.folder, int(c.owner.Uid), int(c.owner.Gid))
}

// Resume starts the server again after Halt.
func (c *Cluster) Resume() error {
	if err := c.run("pg_ctl", "-D", c.data(), "-l", filepath.Join(c.folder, "log"), "-w", "-t", "600", "start"); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		return err
	}
	c.PID, err = strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	return err
}

// Halt stops the server at once, as a crash would. Its data stays.
func (c *Cluster) Halt() error {
	return c.run("pg_ctl", "-D", c.data(), "-m", "immediate", "-w", "stop")
}

// Stop ends the server and removes its data.
func (c *Cluster) Stop() {
	if c.PID > 0 {
		_ = c.run("pg_ctl", "-D", c.data(), "-m", "immediate", "-w", "stop")
	}
	if c.folder != "" {
		_ = os.RemoveAll(c.folder)
	}
}

func (c *Cluster) data() string { return filepath.Join(c.folder, "data") }

// run runs one of PostgreSQL's programs, never as root.
func (c *Cluster) run(program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, program), args...)
	cmd.Dir = c.folder
	cmd.Env = append(append(os.Environ(), "LC_ALL=C"), c.environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner, Setpgid: true}
	// A file instead of a pipe: the server keeps it open after pg_ctl has ended.
	out, err := os.CreateTemp("", "sluice-postgres-out-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w\n%s", program, err, said)
	}
	return out.Close()
}

// unprivileged returns the user to run the server as, because PostgreSQL refuses root. Nil: the
// current user.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("there is neither a user postgres nor a user nobody to run PostgreSQL as")
}

// findBinaries looks for PostgreSQL's programs where systems install them, the newest first.
func findBinaries() (string, error) {
	var folders []string
	if named := os.Getenv("SLUICE_TEST_POSTGRES_BIN"); named != "" {
		folders = append(folders, named)
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
		"/usr/pgsql-*/bin", "/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		sort.Sort(sort.Reverse(sort.StringSlice(found)))
		folders = append(folders, found...)
	}
	if initdb, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(initdb))
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err == nil {
			return folder, nil
		}
	}
	return "", ErrNoPostgres
}
