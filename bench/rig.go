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
	// poolConnections is the size of every pool of connections to PostgreSQL.
	poolConnections = "20"
	// room is how much a backlog of a million jobs and PostgreSQL's log may take.
	room = 12 << 30
)

// rig is what cells need: a server, a folder for files, and programs. What no cell asks for is not
// made.
type rig struct {
	folder  string
	program string
	cluster *pgtest.Cluster // nil: no cell has needed it so far
	engines *pgtest.Cluster // that of the Temporal servers; nil likewise
	river   string          // the program of River on SQLite; empty: not built so far
	schema  string          // goqite's; empty: not read so far
	made    int             // how many databases and files there were
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

// checkRoom looks whether the largest scenario finds room.
func (r *rig) checkRoom() error {
	free, err := report.FreeBytes(r.folder)
	if err == nil && free < room {
		err = fmt.Errorf("%d GiB are free where the databases go, and %d are needed", free>>30, room>>30)
	}
	return err
}

// close ends the server and removes all data.
func (r *rig) close() {
	for _, cluster := range []*pgtest.Cluster{r.cluster, r.engines} {
		if cluster != nil {
			cluster.Stop()
		}
	}
	_ = os.RemoveAll(r.folder)
}

// run measures one cell in a place of its own, which is gone afterwards.
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

// clear removes what a cell left, and has the disk finish, so that the next one does not pay.
func (r *rig) clear(remove func() error) {
	_ = remove() // at the latest it goes with the whole rig
	syscall.Sync()
}

// prepare makes what a task needs besides its place, and names the program that does it.
func (r *rig) prepare(ctx context.Context, task *cell.Task) (program string, err error) {
	if task.Store == cell.Postgres && r.cluster == nil {
		if r.cluster, err = pgtest.Start(pgtest.Options{Durable: true, Settings: []string{
			"max_connections = 300", "shared_preload_libraries = pg_stat_statements", "pg_stat_statements.track = none",
		}}); err != nil {
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

// goqiteSchema reads the schema that goqite brings along as a file only.
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

// riverSQLite builds the module beside this one.
func (r *rig) riverSQLite(ctx context.Context) (string, error) {
	if r.river != "" {
		return r.river, nil
	}
	program := filepath.Join(r.folder, "riversqlite")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = "riversqlite"
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build riversqlite (run this in the folder bench): %w\n%s", err, out)
	}
	r.river = program
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

// placeOf gives the URL of another database of a server.
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
