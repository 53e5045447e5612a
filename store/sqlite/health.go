package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

//go:embed sql/health_file.sql
var healthFileSQL string

var (
	_ health.Store       = (*Store)(nil)
	_ health.MetricStore = (*Store)(nil)
)

// lookTimeout limits each inspection that is not patient.
const lookTimeout = 3 * time.Second

// Health checks the file, its log, the disk and the holders of the file's locks, and writes
// nothing.
func (s *Store) Health(ctx context.Context, options health.Options) (health.Report, error) {
	c := &examination{store: s, options: options, path: s.writer.file.path}
	if err := s.read(ctx, "look at the file", c.file); err != nil {
		return health.Report{}, err
	}
	for _, one := range c.looks() {
		if err := c.at(ctx, one); err != nil {
			if ctx.Err() != nil {
				return health.Report{}, fmt.Errorf("look at the store: %w", ctx.Err())
			}
			c.Find(health.SeverityWarning, one.check, "this could not be looked at: "+err.Error(), "what cannot be seen cannot be mended", "look again in a minute")
		}
	}
	return c.Health, nil
}

// inspection is one check of a file.
type inspection struct {
	check string
	see   func(context.Context) error
	// patient inspections have only the caller's deadline: they compute, and wait for no lock.
	patient bool
}

func (c *examination) looks() []inspection {
	all := []inspection{
		{check: "moved", see: c.wasMoved},
		{check: "index", see: c.objects, patient: true},
		{check: "follower", see: c.followers},
		{check: "wal", see: c.log},
		{check: "lock", see: c.lock},
		{check: "disk", see: c.disk},
	}
	if c.options.Thorough {
		all = append(all, inspection{check: "integrity", see: c.integrity, patient: true}, inspection{check: "orphan", see: c.orphans, patient: true})
	}
	return all
}

// at runs one inspection under its own deadline.
func (c *examination) at(ctx context.Context, one inspection) error {
	if !one.patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.store.lookTimeout)
		defer cancel()
	}
	return one.see(ctx)
}

// examination is one run of all inspections.
type examination struct {
	checkup.Report

	store   *Store
	options health.Options
	path    string
	on      fileRow
}

// judge returns the severity of a value for a check.
func (c *examination) judge(check string, value float64) health.Severity {
	return c.store.checks[check].Judge(value)
}

// shell returns a shell command that runs a statement on the file, and waits for programs that use
// the file.
func (c *examination) shell(statement string) string {
	return "sqlite3 -cmd '.timeout 10000' " + quoted(c.path) + " " + quoted(statement)
}

// quoted quotes a text for a shell.
func quoted(text string) string {
	switch {
	case !strings.ContainsAny(text, " '\"$`\\!*?[](){}<>|&;~#\n\t"):
		return text
	case !strings.Contains(text, "'"):
		return "'" + text + "'"
	case !strings.ContainsAny(text, "\"$`\\!"):
		return `"` + text + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// HealthMetrics returns metrics of the writer's queue, and of the log as the file system shows it,
// without a query.
func (s *Store) HealthMetrics() []health.Metric {
	of := func(name string, value float64, unit string) health.Metric {
		return health.Metric{Name: name, Value: value, Unit: unit}
	}
	state := logOf(s.writer.file.path)
	return []health.Metric{
		of("writer_queue", float64(len(s.writer.queue)), ""),
		of("busy_waits_total", float64(s.writer.waits.times.Load()), ""),
		of("busy_wait_seconds_total", s.writer.waits.waited().Seconds(), "seconds"),
		of("wal_bytes", float64(state.bytes), "bytes"),
		of("checkpoint_age_seconds", state.age.Seconds(), "seconds"),
		of("checkpoints_total", float64(state.begun), ""),
	}
}

// logState is the state of the write-ahead log in the file system.
type logState struct {
	bytes int64
	// age is the time since the last checkpoint, while the log holds changes.
	age time.Duration
	// begun is how often SQLite restarted the log after a complete checkpoint.
	begun uint32
}

// logOf reads the state of file and log. The only file that logOf opens is the log, which SQLite
// never locks. Closing a locked file would release the locks of the whole process.
func logOf(path string) logState {
	log, err := os.Stat(path + "-wal")
	if err != nil {
		return logState{}
	}
	state := logState{bytes: log.Size(), begun: begunOf(path + "-wal")}
	// In this journal mode, only a checkpoint writes the file.
	if file, err := os.Stat(path); err == nil && log.Size() > 0 && log.ModTime().After(file.ModTime()) {
		state.age = max(time.Since(file.ModTime()), 0)
	}
	return state
}

// begunOf reads the number of restarts from the header of the log.
func begunOf(path string) uint32 {
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	var head [16]byte
	if _, err := io.ReadFull(file, head[:]); err != nil {
		return 0
	}
	return binary.BigEndian.Uint32(head[12:])
}

// fileRow is the file's configuration as health_file.sql returns it.
type fileRow struct {
	version               string
	mode                  string
	pages, free, pageSize float64
	step                  int
}

// file inspects the file's configuration.
func (c *examination) file(tx runner) error {
	rows, err := list(tx, func(rows *sql.Rows) (row fileRow, err error) {
		err = rows.Scan(&row.version, &row.mode, &row.pages, &row.free, &row.pageSize, &row.step)
		return row, err
	}, healthFileSQL)
	if err != nil {
		return err
	}
	c.on = rows[0]
	c.Health = health.Report{Kind: "sqlite", Metrics: c.store.HealthMetrics()}
	c.Well("server", "SQLite %s", c.on.version)
	c.schema()
	c.journal()
	c.pages()
	return nil
}

func (c *examination) schema() {
	c.Figure("schema_version", float64(c.on.step), "")
	if known := knownSteps(); c.on.step > known {
		c.Find(health.SeverityNote, "schema", fmt.Sprintf("the file has had schema step %d, this program knows %d", c.on.step, known),
			"it works, and does not know what is new", "install the newer sluice")
		return
	}
	c.Well("schema", "up to date")
}

func (c *examination) journal() {
	c.Well("journal", "%s", c.on.mode) // the store opens no file with another mode than the write-ahead log
	if c.store.options.Relaxed {
		c.Find(health.SeverityWarning, "durability", "this process acknowledges commits before they are on the disk (Options.Relaxed)",
			"a power cut loses the last of them: jobs are gone, and those that were done are run again", "open the store without Relaxed")
	} else {
		c.Well("durability", "every commit is on the disk before it is acknowledged")
	}
}

func (c *examination) pages() {
	free, all := c.on.free*c.on.pageSize, c.on.pages*c.on.pageSize
	c.Figure("free_pages", c.on.free, "pages")
	c.Figure("free_bytes", free, "bytes")
	c.Figure("file_bytes", all, "bytes")
	if severity := c.judge("pages", free); severity != "" && free > all/2 {
		c.Find(severity, "pages", fmt.Sprintf("%s of the %s of the file are free", checkup.Bytes(free), checkup.Bytes(all)),
			"they are used again, but the disk does not get them back", "while nothing is urgent, since everybody waits meanwhile: "+c.shell("vacuum"))
	}
}
