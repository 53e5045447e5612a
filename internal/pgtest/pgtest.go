package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

var (
	server    = sync.OnceValues(startServer)
	started   *Cluster
	databases atomic.Int64
	keeping   sync.Mutex
	kept      []string // databases that DropTemplates drops
)

func startServer() (string, error) {
	if named := os.Getenv(Env); named != "" {
		return named, nil
	}
	var err error
	if started, err = Start(Options{}); err != nil {
		return "", err
	}
	return started.URL, nil
}

// Main runs the tests of a package, and then stops the cluster that they started, if any. Call it
// from TestMain.
func Main(m *testing.M) {
	code := m.Run()
	DropTemplates()
	if started != nil {
		started.Stop()
	}
	os.Exit(code)
}

// DropTemplates drops the databases of Templates. Main calls it.
func DropTemplates() {
	keeping.Lock()
	defer keeping.Unlock()
	for _, name := range kept {
		if base, err := server(); err == nil {
			_ = administer(base, "drop database if exists "+name+" with (force)") // the server may be gone
		}
	}
	kept = nil
}

// NewDatabase returns the URL of a new, empty database, which is dropped at the end of the test.
// Without a server in Env, the first call starts a cluster, which Main stops.
func NewDatabase(t testing.TB) string {
	t.Helper()
	return dropped(t, "")
}

// Template is a database that tests get copies of. A copy costs a tenth of most ways to fill a
// database.
type Template struct {
	// Fill fills the original. Its argument is the original's URL.
	Fill func(ctx context.Context, url string) error

	once sync.Once
	name string
	err  error
}

// Copy returns the URL of a new copy, which is dropped at the end of the test. The first call fills
// the original; DropTemplates drops it.
func (p *Template) Copy(t testing.TB) string {
	t.Helper()
	p.once.Do(p.make)
	if p.err != nil {
		t.Fatal(p.err)
	}
	return dropped(t, " template "+p.name)
}

func (p *Template) make() {
	at, name, err := create("")
	if p.err = err; err != nil {
		return
	}
	p.name = name
	keeping.Lock()
	kept = append(kept, name)
	keeping.Unlock()
	p.err = p.Fill(context.Background(), at)
}

func dropped(t testing.TB, how string) string {
	t.Helper()
	at, name, err := create(how)
	if err != nil {
		t.Fatal(err)
	}
	base, _ := server() // create has found it
	t.Cleanup(func() {
		if err := administer(base, "drop database if exists "+name+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	return at
}

func create(how string) (at, name string, err error) {
	base, err := server()
	if err != nil {
		return "", "", err
	}
	parsed, err := url.Parse(base)
	if err != nil {
		return "", "", fmt.Errorf("%s must be a URL: %w", Env, err)
	}
	strategy, err := copying()
	if err != nil {
		return "", "", err
	}
	name = fmt.Sprintf("sluice_test_%d_%d_%d", os.Getpid(), time.Now().UnixMilli(), databases.Add(1))
	parsed.Path = "/" + name
	return parsed.String(), name, administer(base, "create database "+name+how+strategy)
}

// copying returns how databases are created, if the server knows two ways. Copying files takes 1/40
// of the CPU of writing each page to the log.
var copying = sync.OnceValues(func() (strategy string, err error) {
	base, err := server()
	if err != nil {
		return "", err
	}
	err = onServer(base, func(ctx context.Context, conn *pgx.Conn) error {
		const text = "select case when current_setting('server_version_num')::integer >= 150000 then ' strategy file_copy' else '' end"
		return conn.QueryRow(ctx, text).Scan(&strategy)
	})
	return strategy, err
})

// admin is the connection that creates and drops databases. A new one for each takes longer than most databases do.
var admin struct {
	mu   sync.Mutex
	conn *pgx.Conn
}

// administer runs a statement on the server's first database.
func administer(base, statement string) error {
	return onServer(base, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
		return nil
	})
}

// onServer calls a function with the connection of this process.
func onServer(base string, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	admin.mu.Lock()
	defer admin.mu.Unlock()
	if admin.conn == nil || admin.conn.IsClosed() || admin.conn.Ping(ctx) != nil {
		conn, err := pgx.Connect(ctx, base)
		if err != nil {
			return fmt.Errorf("connect to the test server: %w", err)
		}
		admin.conn = conn
	}
	return do(ctx, admin.conn)
}
