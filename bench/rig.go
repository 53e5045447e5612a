package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/report"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

const (
	// poolConnections is the size of each pool of connections to PostgreSQL, except in Fleet cells.
	poolConnections = "20"
	// room is the disk space in bytes for a backlog of a million jobs and PostgreSQL's log.
	room = 12 << 30
)

// rig holds the servers, the folder and the programs of the cells. Each is made when a cell first needs it.
type rig struct {
	folder  string
	program string
	cluster *pgtest.Cluster // nil until a cell needs it
	engines *pgtest.Cluster // the Temporal servers' cluster; nil until a cell needs it
	river   string          // the program of River on SQLite; empty until built
	sluice  string          // the command; empty until built
	schema  string          // goqite's schema; empty until read
	made    int             // number of cells so far; it makes names unique
}

func newRig(ctx context.Context) (*rig, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return nil, err
	}
	return &rig{folder: folder, program: program}, ctx.Err()
}

// checkRoom returns an error if the disk has too little room for the largest scenario.
func (r *rig) checkRoom() error {
	free, err := report.FreeBytes(r.folder)
	if err == nil && free < room {
		err = fmt.Errorf("%d GiB are free where the databases go, and %d are needed", free>>30, room>>30)
	}
	return err
}

// close stops the servers and removes all data.
func (r *rig) close() {
	for _, cluster := range []*pgtest.Cluster{r.cluster, r.engines} {
		if cluster != nil {
			cluster.Stop()
		}
	}
	_ = os.RemoveAll(r.folder)
}

// run measures one cell in a fresh file or database, and removes it afterwards.
func (r *rig) run(ctx context.Context, task cell.Task) (cell.Result, error) {
	program, err := r.prepare(ctx, &task)
	if err != nil {
		return nil, err
	}
	r.made++
	if task.Store == cell.SQLite {
		folder := filepath.Join(r.folder, fmt.Sprintf("cell-%d", r.made))
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
		task.Place = filepath.Join(folder, "queue.db")
		defer r.clear(func() error { return os.RemoveAll(folder) })
		return r.launch(ctx, program, task)
	}
	database := fmt.Sprintf("cell_%d", r.made)
	if err := admin(ctx, r.cluster, "create database "+database); err != nil {
		return nil, err
	}
	defer r.clear(func() error { return admin(ctx, r.cluster, "drop database "+database+" with (force)") })
	if task.Place, err = placeOf(r.cluster.URL, database); err != nil {
		return nil, err
	}
	task.ServerPID = r.cluster.PID
	if !task.Kind.NeedsTemporal() {
		return r.launch(ctx, program, task)
	}
	return r.besideTemporal(ctx, program, task)
}

func (r *rig) launch(ctx context.Context, program string, task cell.Task) (cell.Result, error) {
	limited, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	return cell.Launch(limited, program, nil, task)
}

// clear removes a cell's data and syncs the disk, or the next cell would pay for the writes.
func (r *rig) clear(remove func() error) {
	_ = remove() // close removes leftovers
	syscall.Sync()
}

// prepare makes the server or schema that a task needs, and returns the program that runs it.
func (r *rig) prepare(ctx context.Context, task *cell.Task) (program string, err error) {
	if task.Store == cell.Postgres && r.cluster == nil {
		if r.cluster, err = pgtest.Start(pgtest.Options{Durable: true, Settings: []string{
			"max_connections = 300", "shared_preload_libraries = pg_stat_statements", "pg_stat_statements.track = none",
		}}); err != nil {
			return "", err
		}
	}
	if task.Kind.NeedsCommand() {
		if task.Sluice, err = r.command(ctx); err != nil {
			return "", err
		}
	}
	switch task.System {
	case cell.Goqite:
		task.Schema, err = r.goqiteSchema(ctx)
	case cell.RiverSQLite:
		return r.riverSQLite(ctx)
	}
	return r.program, err
}

// goqiteSchema reads goqite's schema from its module, because the package does not export it.
func (r *rig) goqiteSchema(ctx context.Context) (string, error) {
	if r.schema != "" {
		return r.schema, nil
	}
	folder, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "maragu.dev/goqite").Output()
	if err != nil {
		return "", fmt.Errorf("find goqite: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "schema_sqlite.sql"))
	r.schema = string(text)
	return r.schema, err
}

// riverSQLite builds the module riversqlite.
func (r *rig) riverSQLite(ctx context.Context) (string, error) {
	if r.river != "" {
		return r.river, nil
	}
	program, err := r.build(ctx, "riversqlite", ".", "GOWORK=off") // the workspace around it is of bench
	r.river = program
	return program, err
}

// command builds the command.
func (r *rig) command(ctx context.Context) (string, error) {
	if r.sluice != "" {
		return r.sluice, nil
	}
	program, err := r.build(ctx, "../cmd", "./sluice")
	r.sluice = program
	return program, err
}

// build builds a program of another module.
func (r *rig) build(ctx context.Context, module, pkg string, env ...string) (string, error) {
	program := filepath.Join(r.folder, "built-"+filepath.Base(module))
	build := exec.CommandContext(ctx, "go", "build", "-o", program, pkg)
	build.Dir, build.Env = module, append(os.Environ(), env...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s in %s (run this in the folder bench): %w\n%s", pkg, module, err, out)
	}
	return program, nil
}

func admin(ctx context.Context, cluster *pgtest.Cluster, statement string) error {
	conn, err := pgx.Connect(ctx, cluster.URL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// placeOf returns the URL of a database on a server, with pool_max_conns set.
func placeOf(server, database string) (string, error) {
	at, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	at.Path = "/" + database
	query := at.Query()
	query.Set("pool_max_conns", poolConnections)
	at.RawQuery = query.Encode()
	return at.String(), nil
}
