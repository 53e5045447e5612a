// Package move moves a whole system from one store to another, such as from a SQLite file to PostgreSQL when
// one machine is too small.
//
// A move covers queues with their settings, tenants and limits, and jobs with their lives, history, keys, order
// and runs at engines. Operations, forecasts, statistics, alerts and the audit are moved too. The target then
// equals the source; only the processes of the source are left out.
//
// Begin with [Run], which copies, compares and resumes an interrupted move. [Reopen] gives a move up. Next,
// read docs/guide/sqlite-to-postgres.md, and docs/decisions/0018-move.md for the reasons.
package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// Options adjust a move. The zero value works.
type Options struct {
	// Wait is how long to wait for claimed jobs, while the source accepts no new jobs or claims. Default: 0; a
	// claimed job is then a [BusyError].
	Wait time.Duration
	// Progress receives intermediate states. Default: none.
	Progress func(Progress)
}

// Progress is the intermediate state of a move.
type Progress struct {
	// Doing is "waiting", "copying" or "checking".
	Doing string
	// Table is the table being copied or checked.
	Table string
	// Rows is how many rows were copied or checked so far, of a total of Of.
	Rows, Of int64
	// Claimed is how many claimed jobs the move waits for.
	Claimed int64
}

// Report is the result of a move.
type Report struct {
	// Tables describes each table that the call compared, in the order of the move. Empty: an earlier call compared both stores.
	Tables []TableReport `json:"tables"`
	// Rows is how many rows were moved in all.
	Rows int64 `json:"rows"`
	// Resumed is true if the move continued an earlier one. Already is true if the move had ended before.
	Resumed bool          `json:"resumed,omitempty"`
	Already bool          `json:"already,omitempty"`
	Took    time.Duration `json:"took"`
}

// TableReport is the result of one table.
type TableReport struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
	// Sum is the checksum of the rows, equal in both stores.
	Sum string `json:"sum"`
}

// ErrRefused is the error of a move that would lose data or cannot begin. Nothing was changed.
var ErrRefused = errors.New("not moved")

// BusyError means that jobs of the source are claimed. The source is open as before.
type BusyError struct {
	Claimed int64
	// Holders are some of the holders of these jobs.
	Holders []string
}

// Error names holders and the remedy.
func (e *BusyError) Error() string {
	jobs := "1 job of the source is"
	if e.Claimed != 1 {
		jobs = fmt.Sprintf("%d jobs of the source are", e.Claimed)
	}
	return fmt.Sprintf("%s claimed by %s; stop the workers and dispatchers, which hand back what they have, or wait for them", jobs, strings.Join(e.Holders, ", "))
}

// Is makes a BusyError an [ErrRefused].
func (e *BusyError) Is(target error) bool { return target == ErrRefused }

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

// Run moves all data from one store to another. Each is sqlite:PATH or the URL of a PostgreSQL database, whose
// role must own Sluice's tables. The target must be empty; Run creates missing tables.
//
// From the start, the source accepts no new jobs and no claims; once no job is claimed, it accepts no changes
// at all. The source stays closed: every write fails with [sluice.ErrMoved]. No process can open the target
// until Run has copied everything and compared both stores. To continue an interrupted move, call Run again.
func Run(ctx context.Context, from, to string, options Options) (Report, error) {
	begun := time.Now()
	if options.Progress == nil {
		options.Progress = func(Progress) {}
	}
	m := &mover{options: options, tables: tables(), report: Report{Tables: []TableReport{}}}
	err := m.open(ctx, from, to)
	defer m.close()
	if err == nil {
		err = m.run(ctx)
	}
	m.report.Took = time.Since(begun)
	return m.report, err
}

// Reopen reopens the source of an unfinished move. The data in the target are then useless.
func Reopen(ctx context.Context, from string) error {
	source, err := openSource(ctx, from)
	if err != nil {
		return err
	}
	defer source.close()
	m, err := source.mark(ctx)
	switch {
	case err != nil:
		return err
	case m == nil:
		return refused("%s was not moved", source.name())
	case m.Done:
		return refused("%s was moved to %s, which has all of its jobs: both would run them; to come back, move that one into a new store", source.name(), m.To)
	}
	return source.reopen(ctx, m.ID, true)
}

type mover struct {
	options        Options
	tables         []table
	source, target store
	state          state
	report         Report
	rows, of       int64
}

func (m *mover) open(ctx context.Context, from, to string) (err error) {
	if m.source, err = openSource(ctx, from); err != nil {
		return fmt.Errorf("open the source: %w", err)
	}
	if m.target, err = openTarget(ctx, to); err != nil {
		return fmt.Errorf("open the target: %w", err)
	}
	if m.source.name() == m.target.name() {
		return refused("the source and the target are the same store")
	}
	if err := prepareTarget(ctx, to, m.target); err != nil {
		return fmt.Errorf("prepare the target: %w", err)
	}
	for _, s := range []store{m.source, m.target} {
		if err := m.knows(ctx, s); err != nil {
			return err
		}
	}
	return m.sameStep(ctx)
}

func (m *mover) close() {
	for _, s := range []store{m.source, m.target} {
		if s != nil {
			s.close()
		}
	}
}

func (m *mover) sameStep(ctx context.Context) error {
	here, err := m.source.step(ctx)
	if err != nil {
		return err
	}
	there, err := m.target.step(ctx)
	if err != nil {
		return err
	}
	if here != there {
		return refused("%s has schema step %d and %s step %d; run `sluice migrate` on the older one", m.source.name(), here, m.target.name(), there)
	}
	return nil
}

// knows refuses a store with tables or columns that this program cannot move.
func (m *mover) knows(ctx context.Context, s store) error {
	there, err := s.columns(ctx)
	if err != nil {
		return err
	}
	if odd := unknown(s, m.tables, there); len(odd) > 0 {
		return refused("%s has %s, of which this program does not know how to move it; use the program that migrated it", s.name(), strings.Join(odd, ", "))
	}
	return nil
}

// unknown lists the tables and columns of a store that are missing in the plan of a move, and the reverse.
func unknown(s store, plan []table, there map[string][]string) []string {
	planned := make(map[string]bool)
	var odd []string
	for i := range plan {
		t := &plan[i]
		l := s.layout(t)
		known := append(slices.Clone(l.left), storedColumns(s, t)...)
		for name := range l.made {
			known = append(known, name)
		}
		full := tableName(s, l)
		planned[full] = true
		for _, name := range there[full] {
			if !slices.Contains(known, name) {
				odd = append(odd, full+"."+name)
			}
		}
		for _, name := range known {
			if !slices.Contains(there[full], name) {
				odd = append(odd, "no "+full+"."+name)
			}
		}
	}
	for name := range there {
		if _, stays := notMoved[name]; !stays && !planned[name] {
			odd = append(odd, name)
		}
	}
	slices.Sort(odd)
	return odd
}

func (m *mover) run(ctx context.Context) error {
	over, err := m.begin(ctx)
	if err != nil || over {
		return err
	}
	if err := m.copy(ctx); err != nil {
		return fmt.Errorf("%w; run it again to go on, or give up with --reopen", err)
	}
	if err := m.target.settle(ctx); err != nil {
		return err
	}
	if err := m.compare(ctx); err != nil {
		return err
	}
	if err := m.source.done(ctx, m.state.ID); err != nil {
		return err
	}
	return m.admit(ctx)
}

// admit opens the target for all processes. Its audit continues the chain of the source.
func (m *mover) admit(ctx context.Context) error {
	last, err := m.source.seal(ctx)
	if err != nil {
		return fmt.Errorf("read the last seal of the audit: %w", err)
	}
	chain, err := last.successor(m.source.name())
	if err != nil {
		return err
	}
	return m.target.end(ctx, m.state.ID, chain)
}

// begin resumes an earlier move, or begins one. over is true if no work is left.
func (m *mover) begin(ctx context.Context) (over bool, err error) {
	was, err := m.source.mark(ctx)
	if err != nil {
		return false, err
	}
	kept, err := m.target.state(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case kept != nil && was != nil && kept.ID == was.ID:
		m.state, m.report.Resumed = *kept, true
		if was.Done {
			return true, m.admit(ctx)
		}
		if was.Frozen {
			return false, nil
		}
	case was != nil && was.Done && was.To == m.target.name() && kept == nil:
		m.report.Already = true
		return true, nil
	case was != nil:
		return false, refused("%s is being moved, or was, to %s; go on with that, or give up with --reopen", m.source.name(), was.To)
	case kept != nil && !kept.fresh():
		return false, refused("%s has a part of another move, from %s; drop it and begin with an empty store", m.target.name(), kept.From)
	case kept != nil:
		m.state = *kept
	default:
		if err := m.empty(ctx); err != nil {
			return false, err
		}
		m.state = state{ID: sluice.NewID().String(), From: m.source.name()}
	}
	if err := m.target.begin(ctx, m.state); err != nil {
		return false, err
	}
	return false, m.freeze(ctx)
}

// empty refuses a target with data.
func (m *mover) empty(ctx context.Context) error {
	for i := range m.tables {
		found, err := m.target.any(ctx, &m.tables[i])
		if err != nil {
			return err
		}
		if found {
			return refused("the target %s is not empty: it has %s", m.target.name(), m.tables[i].name)
		}
	}
	return nil
}

// claimPoll is how often to look at the claimed jobs that the move waits for.
const claimPoll = 200 * time.Millisecond

// freeze closes the source to jobs and claims, and to all changes once no job is claimed. If that takes too
// long, freeze reopens the source.
func (m *mover) freeze(ctx context.Context) (err error) {
	defer func() {
		if err == nil {
			return
		}
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		stays := m.source.reopen(undo, m.state.ID, false)
		if stays == nil { // else the target stays closed too
			stays = m.target.end(undo, m.state.ID, nil)
		}
		err = errors.Join(err, stays)
	}()
	if err := m.empty(ctx); err != nil { // another move may have filled it since the last look
		return err
	}
	until := time.Now().Add(m.options.Wait)
	if err := m.source.shut(ctx, mark{ID: m.state.ID, To: m.target.name(), At: time.Now()}); err != nil {
		return err
	}
	for {
		claimed, holders, err := m.source.claims(ctx)
		if err != nil {
			return err
		}
		if claimed == 0 {
			if frozen, err := m.source.freeze(ctx, m.state.ID); err != nil || frozen {
				return err
			}
			continue
		}
		if time.Now().After(until) {
			return &BusyError{Claimed: claimed, Holders: holders}
		}
		m.options.Progress(Progress{Doing: "waiting", Claimed: claimed})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(claimPoll):
		}
	}
}

// copy copies the remaining rows to the target, batch after batch.
func (m *mover) copy(ctx context.Context) error {
	if err := m.tally(ctx); err != nil {
		return err
	}
	var err error
	if m.state.Base, err = m.source.last(ctx); err != nil {
		return err
	}
	for m.state.Table < len(m.tables) {
		t := &m.tables[m.state.Table]
		after, err := keyOf(m.state.After)
		if err != nil {
			return err
		}
		rows, err := m.source.read(ctx, t, after)
		if err != nil {
			return fmt.Errorf("read %s: %w", t.name, err)
		}
		if len(rows) == 0 {
			m.state.Table, m.state.After, m.state.Rows = m.state.Table+1, nil, 0
			continue
		}
		if m.state.After, err = keyParts(rows[len(rows)-1].key); err != nil {
			return err
		}
		m.state.Rows += int64(len(rows))
		if err := m.target.write(ctx, t, rows, m.state); err != nil {
			return fmt.Errorf("write %s: %w", t.name, err)
		}
		m.rows += int64(len(rows))
		m.options.Progress(Progress{Doing: "copying", Table: t.name, Rows: m.rows, Of: m.of})
	}
	return nil
}

// tally counts all rows, and the rows that were copied before.
func (m *mover) tally(ctx context.Context) error {
	for i := range m.tables {
		n, err := m.source.count(ctx, &m.tables[i])
		if err != nil {
			return err
		}
		m.of += n
		if i < m.state.Table {
			m.rows += n
		}
	}
	m.rows += m.state.Rows
	return nil
}

// compare reads both stores, and checks that they hold the same.
func (m *mover) compare(ctx context.Context) error {
	checked := int64(0)
	for i := range m.tables {
		t := &m.tables[i]
		type outcome struct {
			sum Sum
			err error
		}
		theirs := make(chan outcome, 1)
		go func() {
			sum, err := sumOf(ctx, m.target, t, func(int) {})
			theirs <- outcome{sum, err}
		}()
		ours, err := sumOf(ctx, m.source, t, func(rows int) {
			checked += int64(rows)
			m.options.Progress(Progress{Doing: "checking", Table: t.name, Rows: checked, Of: m.of})
		})
		other := <-theirs
		if err := errors.Join(err, other.err); err != nil {
			return fmt.Errorf("check %s: %w", t.name, err)
		}
		if ours != other.sum {
			return fmt.Errorf("%s differ after the copy: the source has %s, the target %s; nothing may use the target, drop it and begin again with --reopen",
				t.name, ours, other.sum)
		}
		m.report.Tables = append(m.report.Tables, TableReport{Name: t.name, Rows: ours.Rows, Sum: fmt.Sprintf("%016x%016x", ours.high, ours.low)})
		m.report.Rows += ours.Rows
	}
	return nil
}

func sumOf(ctx context.Context, s store, t *table, read func(rows int)) (Sum, error) {
	var sum Sum
	for after := []any(nil); ; {
		rows, err := s.read(ctx, t, after)
		if err != nil || len(rows) == 0 {
			return sum, err
		}
		for _, r := range rows {
			sum.add(t, r.values)
		}
		after = rows[len(rows)-1].key
		read(len(rows))
	}
}
