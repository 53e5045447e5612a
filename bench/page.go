package main

import (
	"context"
	"database/sql"
	"debug/buildinfo"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/report"
	"github.com/sluice-queue/sluice/bench/stat"
)

// columns are the columns of all tables, in order. A table shows only columns that have figures.
var columns = []report.Column{
	{Key: string(cell.EnqueueRate), Title: "stored/s"},
	{Key: string(cell.WorkRate), Title: "worked/s"},
	{Key: string(cell.WholeRate), Title: "whole/s"},
	{Key: string(cell.StartRate), Title: "started/s", Decimals: 1},
	{Key: string(cell.PlainRate(8)), Title: "client/s, 8 in flight", Decimals: 1},
	{Key: string(cell.PlainRate(16)), Title: "16 in flight", Decimals: 1},
	{Key: string(cell.PlainRate(32)), Title: "32 in flight", Decimals: 1},
	{Key: string(cell.PlainEngine), Title: "plain engine", Decimals: 1},
	{Key: string(cell.PlainCPU), Title: "plain CPU", Decimals: 1},
	{Key: string(cell.EngineRows), Title: "rows in Temporal", Decimals: 1},
	{Key: string(cell.Rows), Title: "rows", Decimals: 1},
	{Key: string(cell.Bytes), Title: "bytes"},
	{Key: string(cell.WAL), Title: "WAL bytes"},
	{Key: string(cell.WaitCPU), Title: "CPU ms/1,000 to wait", Decimals: 1},
	{Key: string(cell.FirstDone), Title: "first s", Decimals: 1},
	{Key: string(cell.Drain), Title: "drain s", Decimals: 1},
	{Key: string(cell.AloneP99), Title: "alone p99 ms"},
	{Key: string(cell.P50), Title: "p50 ms", Decimals: 2},
	{Key: string(cell.P95), Title: "p95 ms", Decimals: 2},
	{Key: string(cell.P99), Title: "p99 ms", Decimals: 2},
	{Key: string(cell.Worst), Title: "worst ms", Decimals: 1},
	{Key: string(cell.NewP50), Title: "new p50 ms", Decimals: 2},
	{Key: string(cell.NewP99), Title: "new p99 ms", Decimals: 2},
	{Key: string(cell.Span), Title: "span ×", Decimals: 2},
	{Key: string(cell.Lowest), Title: "lowest", Decimals: 2},
	{Key: string(cell.Memory), Title: "memory MiB", Decimals: 0},
	{Key: string(cell.NearP50), Title: "near p50 ms", Decimals: 2},
	{Key: string(cell.NearP99), Title: "near p99 ms", Decimals: 2},
	{Key: string(cell.CountTime), Title: "count ms", Decimals: 0},
	{Key: string(cell.KeyP99), Title: "key p99 ms", Decimals: 1},
	{Key: string(cell.TenantP99), Title: "tenant p99 ms", Decimals: 1},
	{Key: string(cell.LabelP99), Title: "label p99 ms", Decimals: 1},
	{Key: string(cell.ListP99), Title: "list p99 ms", Decimals: 2},
	{Key: string(cell.QueuesTime), Title: "queues ms", Decimals: 0},
	{Key: string(cell.JobsTime), Title: "jobs ms", Decimals: 0},
	{Key: string(cell.StatsTime), Title: "stats ms", Decimals: 0},
	{Key: string(cell.WhyTime), Title: "why ms", Decimals: 0},
	{Key: string(cell.ForecastTime), Title: "forecast ms", Decimals: 0},
	{Key: string(cell.FileTime), Title: "file ms", Decimals: 0},
	{Key: string(cell.FirstP99), Title: "first p99 ms", Decimals: 2},
	{Key: string(cell.Aged), Title: "last/first", Decimals: 2},
	{Key: string(cell.Size), Title: "size MiB", Decimals: 0},
	{Key: string(cell.Grown), Title: "grown ×", Decimals: 2},
	{Key: string(cell.Overdue), Title: "overdue ms", Decimals: 0},
	{Key: string(cell.Statements), Title: "statements/s", Decimals: 0},
	{Key: string(cell.ServerCores), Title: "server cores", Decimals: 3},
	{Key: string(cell.ClientCores), Title: "client cores", Decimals: 3},
	{Key: string(cell.Started), Title: "begun, share", Decimals: 3},
	{Key: string(cell.WaiterMemory), Title: "KiB a client", Decimals: 1},
	{Key: string(cell.Prompt), Title: "within 20 ms", Decimals: 3},
	{Key: string(cell.ReadTime), Title: "read ms", Decimals: 1},
	{Key: string(cell.PressedP50), Title: "p50 ×", Decimals: 3},
	{Key: string(cell.PressedCPU), Title: "client CPU ×", Decimals: 3},
	{Key: string(cell.ClientCPU), Title: "client CPU", Decimals: 1},
	{Key: string(cell.ServerCPU), Title: "server CPU", Decimals: 1},
	{Key: string(cell.EngineCPU), Title: "engine CPU", Decimals: 1},
	{Key: string(cell.EnqueueCPU), Title: "CPU to store", Decimals: 1},
	{Key: string(cell.WorkCPU), Title: "CPU to work", Decimals: 1},
	{Key: string(cell.TotalCPU), Title: "CPU ms/1,000", Decimals: 1},
}

const method = `- Each cell is a process on a fresh database or file. The disk is synced between cells.
- Entrants take turns: each round measures each of them once. Figures are medians over the rounds. Ratios are medians of each round's ratio, because the machine's speed drifts. A target's range is that of its rounds.
- PostgreSQL has fsync, full page writes and synchronous commits on, shared_buffers 256 MB, max_wal_size 4 GB, the rest default. Each backlog is analyzed and checkpointed first, for every system. SQLite uses WAL and synchronous=FULL.
- Client, server and benchmark share the machine.
- CPU is user and system time in ms per 1,000 jobs, for storing, working off and stopping: of the client by getrusage, of server processes by /proc.
- Payloads are 1 KB of JSON. Handlers do nothing. Upkeep runs beside the worker, as within River's client.
- Best of the others means the best in each round.`

// section is a scenario with its results.
type section struct {
	scenario
	measured measured
}

// tell builds the report. Its method lists failed cells.
func (r *rig) tell(ctx context.Context, sections []section, failed []error) (report.Report, error) {
	machine, err := report.Machine(r.folder)
	if err != nil {
		return report.Report{}, err
	}
	versions, err := r.versions(ctx)
	if err != nil {
		return report.Report{}, err
	}
	out := report.Report{Machine: machine, Versions: versions, Method: method, Columns: columns}
	for _, err := range failed {
		out.Method += "\n- A cell failed and is left out: " + strings.ReplaceAll(err.Error(), "\n", " ") + "."
	}
	for _, s := range sections {
		out.Sections = append(out.Sections, s.reduce())
	}
	return out, nil
}

// waiting returns the number of waiting jobs that a forecast covers; 0 for other kinds.
func waiting(task cell.Task) int {
	if task.Kind == cell.Waves {
		return task.Ahead
	}
	return 0
}

// reduce takes the median of the rounds for each figure, and the range for each goal.
func (s section) reduce() report.Section {
	out := report.Section{Name: s.name, Title: s.title, Method: s.method, Ratio: s.ratio}
	if s.note != nil {
		out.Note = s.note(s.measured)
	}
	for _, e := range s.entrants {
		row := report.Row{System: e.name, Jobs: max(e.task.Jobs, e.task.Due, waiting(e.task)), Figures: make(map[string]float64)}
		for _, c := range columns {
			if value := stat.Median(s.measured.of(e.name, cell.Figure(c.Key))); !math.IsNaN(value) {
				row.Figures[c.Key] = value
			}
		}
		row.Ratio = stat.Median(s.ratios(s.measured, e.name))
		out.Rows = append(out.Rows, row)
		out.Rounds = len(s.measured[e.name])
	}
	for _, g := range s.goals {
		values := g.values(s.measured)
		low, high := stat.Range(values)
		out.Targets = append(out.Targets, report.Target{
			Text: g.text, Limit: g.limit, AtMost: g.atMost, Unit: g.unit, Value: stat.Median(values), Low: low, High: high,
		})
	}
	return out
}

// versions lists the versions of Go, the servers and the libraries.
func (r *rig) versions(ctx context.Context) ([]report.Fact, error) {
	facts := []report.Fact{{Name: "Go", Value: strings.TrimPrefix(runtime.Version(), "go")}}
	if r.cluster != nil {
		server, err := r.serverVersion(ctx)
		if err != nil {
			return nil, err
		}
		facts = append(facts, report.Fact{Name: "PostgreSQL", Value: server})
	}
	file, err := fileVersion(ctx)
	if err != nil {
		return nil, err
	}
	facts = append(facts, report.Fact{Name: "SQLite", Value: file})
	if built, ok := debug.ReadBuildInfo(); ok {
		facts = append(facts, libraries(built, "", "github.com/riverqueue/river", "github.com/jackc/pgx/v5", "go.temporal.io/sdk",
			"modernc.org/sqlite", "maragu.dev/goqite", "github.com/mikestefanello/backlite")...)
	}
	if r.river == "" {
		return facts, nil
	}
	built, err := buildinfo.ReadFile(r.river)
	if err != nil {
		return nil, fmt.Errorf("versions of riversqlite: %w", err)
	}
	return append(facts, libraries(built, " (for River on SQLite)", "github.com/riverqueue/river", "modernc.org/sqlite")...), nil
}

// libraries lists the versions of modules in a program, with note after each name.
func libraries(built *debug.BuildInfo, note string, paths ...string) []report.Fact {
	var facts []report.Fact
	for _, path := range paths {
		for _, module := range built.Deps {
			if module.Path == path {
				facts = append(facts, report.Fact{Name: path + note, Value: module.Version})
			}
		}
	}
	return facts
}

func (r *rig) serverVersion(ctx context.Context) (string, error) {
	conn, err := pgx.Connect(ctx, r.cluster.URL)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	var version string
	err = conn.QueryRow(ctx, "show server_version").Scan(&version)
	return version, err
}

func fileVersion(ctx context.Context) (string, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	var version string
	err = db.QueryRowContext(ctx, "select sqlite_version()").Scan(&version)
	return version, err
}
