package records

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/graph"
)

// Queue is the queue whose jobs the executions are.
const Queue = "executions"

// MaxVariables bounds what an execution may be given, in bytes.
const MaxVariables = 256 << 10

var (
	//go:embed sql/there.sql
	thereSQL string
	//go:embed sql/version_newest.sql
	versionNewestSQL string
	//go:embed sql/execution_insert.sql
	executionInsertSQL string
	//go:embed sql/executions.sql
	executionsSQL string
	//go:embed sql/steps.sql
	stepsSQL string
)

// State is how an execution is.
type State string

// The states of an execution.
const (
	// Waiting: its run has not begun. Its job says what it waits for.
	Waiting State = "waiting"
	// Running: its run walks the graph.
	Running State = "running"
	// Completed: it came to the end of the graph.
	Completed State = "completed"
	// Failed: it did not, or never began, because what it needs is gone. The error says why.
	Failed State = "failed"
)

// NewExecution asks for an execution.
type NewExecution struct {
	// ID names the execution, its job, and by that its run. Default: a new one. A caller who chooses it may ask again
	// after a lost answer, and finds the first.
	ID         sluice.ID `json:"id"`
	Definition string    `json:"definition"`
	// Version of the definition. Default: the newest.
	Version int `json:"version"`
	// Variables are what the graph begins with: a JSON object.
	Variables map[string]any `json:"variables"`
	// Priority is 1 (first) to 10 (last) within the workspace. Default 5.
	Priority int `json:"priority"`
	// MaxAttempts is after how many failed starts and runs it is given up. Default: as its definition says, or else its
	// workspace, or else the queue's max_attempts.
	MaxAttempts int `json:"max_attempts"`
	// DueAt is when it may start. Default: now.
	DueAt time.Time `json:"due_at"`
}

// Execution is one execution of a workflow definition.
type Execution struct {
	ID         sluice.ID       `json:"id"`
	Workspace  string          `json:"workspace"`
	Definition string          `json:"definition"`
	Version    int             `json:"version"`
	Variables  json.RawMessage `json:"variables"`
	State      State           `json:"state"`
	// Run is the engine's id of its present or last run.
	Run       string    `json:"run,omitempty"`
	Error     string    `json:"error,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Steps are those of its run, where one execution is looked up.
	Steps []graph.Step `json:"steps,omitempty"`
}

// payload is what the job carries and the workflow gets: interpreter.Input. What is to be executed stands in the
// execution's record.
type payload struct {
	Execution sluice.ID `json:"execution"`
	Workspace string    `json:"workspace"`
}

// Enqueue stores an execution and its job in one transaction: the execution's id, which is also the job's, is fixed
// before any engine hears of it. It reports whether the execution is new.
func (d *Database) Enqueue(ctx context.Context, workspace string, e NewExecution) (id sluice.ID, fresh bool, err error) {
	ids, fresh, err := d.EnqueueMany(ctx, workspace, []NewExecution{e})
	if err != nil {
		return sluice.ID{}, false, err
	}
	return ids[0], fresh, nil
}

// EnqueueMany stores executions of a workspace and their jobs, all or none. It reports whether all of them are new.
func (d *Database) EnqueueMany(ctx context.Context, workspace string, all []NewExecution) (ids []sluice.ID, fresh bool, err error) {
	err = d.transact(ctx, func(tx tx, jobs sluice.Enqueuer) error {
		ids, fresh = nil, true
		if d.watch != nil {
			jobs = d.watch(jobs)
		}
		client := d.Client.Within(jobs)
		for _, e := range all {
			id, isNew, err := enqueue(ctx, tx, client, workspace, e)
			if err != nil {
				return fmt.Errorf("enqueue an execution of workspace %.80q: %w", workspace, err)
			}
			ids, fresh = append(ids, id), fresh && isNew
		}
		return nil
	})
	return ids, fresh, err
}

func enqueue(ctx context.Context, tx tx, client *sluice.Client, workspace string, e NewExecution) (sluice.ID, bool, error) {
	version, err := versionFor(ctx, tx, workspace, e)
	if err != nil {
		return e.ID, false, err
	}
	if e.ID.IsZero() {
		e.ID = sluice.NewID()
	}
	variables, err := variablesOf(e)
	if err != nil {
		return e.ID, false, err
	}
	done, err := tx.ExecContext(ctx, executionInsertSQL, e.ID.String(), workspace, e.Definition, version, variables, now())
	if err != nil {
		return e.ID, false, err
	}
	if inserted, err := done.RowsAffected(); err != nil || inserted == 0 {
		return e.ID, false, errors.Join(err, belongs(ctx, tx, workspace, e.ID))
	}
	if e.MaxAttempts == 0 {
		if e.MaxAttempts, err = attemptsOf(ctx, tx, workspace, e.Definition); err != nil {
			return e.ID, false, err
		}
	}
	text, err := json.Marshal(payload{e.ID, workspace})
	if err != nil {
		return e.ID, false, err
	}
	_, err = client.Enqueue(ctx, sluice.NewJob{Queue: Queue, Payload: text, EnqueueOptions: sluice.EnqueueOptions{
		ID: e.ID, Tenant: workspace, Priority: e.Priority, DueAt: e.DueAt, MaxAttempts: e.MaxAttempts,
		Labels: map[string]string{"definition": e.Definition},
	}})
	return e.ID, err == nil, err
}

// attemptsOf is after how many attempts the executions of a definition are given up; 0: as the queue says.
func attemptsOf(ctx context.Context, tx tx, workspace, definition string) (int, error) {
	scan := func(rows *sql.Rows, n *int) error { return rows.Scan(n) }
	found, err := list(ctx, tx, scan, attemptsFindSQL, workspace, definition)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// belongs makes sure that an execution which is there already is the workspace's own.
func belongs(ctx context.Context, tx tx, workspace string, id sluice.ID) error {
	found, err := list(ctx, tx, scanExecution, executionsSQL, workspace, id.String(), 1)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("execution %s: %w", id, sluice.ErrNotFound)
	}
	return err
}

// versionFor finds which version is to be executed. What is not there is a sluice.ErrNotFound.
func versionFor(ctx context.Context, tx tx, workspace string, e NewExecution) (int, error) {
	version := e.Version
	if version == 0 {
		scan := func(rows *sql.Rows, version *int) error { return rows.Scan(version) }
		newest, err := list(ctx, tx, scan, versionNewestSQL, workspace, e.Definition)
		if err != nil {
			return 0, err
		}
		version = newest[0]
	} else if err := checkVersion(version); err != nil {
		return 0, err
	}
	there, err := thereOf(ctx, tx, workspace, e.Definition, version)
	if err == nil && there != all {
		err = fmt.Errorf("version %d of definition %.80q: %w", version, e.Definition, sluice.ErrNotFound)
	}
	return version, err
}

func variablesOf(e NewExecution) (string, error) {
	if e.Variables == nil {
		return "{}", nil
	}
	text, err := json.Marshal(e.Variables)
	if err == nil && len(text) > MaxVariables {
		err = &sluice.InvalidError{Field: "variables", Rule: fmt.Sprintf("%d bytes are more than %d", len(text), MaxVariables)}
	}
	return string(text), err
}

// there says what of an execution's workspace, definition and version is there.
type there struct{ workspace, definition, version bool }

var all = there{true, true, true}

func thereOf(ctx context.Context, from querier, workspace, definition string, version int) (there, error) {
	scan := func(rows *sql.Rows, t *there) error {
		var counts [3]int
		err := rows.Scan(&counts[0], &counts[1], &counts[2])
		*t = there{counts[0] > 0, counts[1] > 0, counts[2] > 0}
		return err
	}
	found, err := list(ctx, from, scan, thereSQL, workspace, definition, version)
	if err != nil {
		return there{}, err
	}
	return found[0], nil
}

// Executions lists those of a workspace, the newest first, at most limit.
func (d *Database) Executions(ctx context.Context, workspace string, limit int) ([]Execution, error) {
	if _, err := d.Workspace(ctx, workspace); err != nil {
		return nil, err
	}
	return list(ctx, d.db, scanExecution, executionsSQL, workspace, "", limit)
}

// Execution finds an execution of a workspace, with its steps. An unknown one, and one of another workspace, is a
// sluice.ErrNotFound. It stays known when the workspace is gone.
func (d *Database) Execution(ctx context.Context, workspace string, id sluice.ID) (Execution, error) {
	found, err := list(ctx, d.db, scanExecution, executionsSQL, workspace, id.String(), 1)
	if err == nil && (workspace == "" || len(found) == 0) {
		err = fmt.Errorf("execution %s: %w", id, sluice.ErrNotFound)
	}
	if err != nil {
		return Execution{}, err
	}
	e := found[0]
	e.Steps, err = list(ctx, d.db, scanStep, stepsSQL, e.ID.String(), e.Run)
	return e, err
}

func scanExecution(rows *sql.Rows, e *Execution) error {
	var id, variables string
	var created, started, ended int64
	err := rows.Scan(&id, &e.Workspace, &e.Definition, &e.Version, &variables, &e.State, &e.Run, &e.Error, &created, &started, &ended)
	if err != nil {
		return err
	}
	e.Variables, e.CreatedAt, e.StartedAt, e.EndedAt = json.RawMessage(variables), instant(created), instant(started), instant(ended)
	e.ID, err = sluice.ParseID(id)
	return err
}

func scanStep(rows *sql.Rows, s *graph.Step) error {
	var result string
	var ended int64
	err := rows.Scan(&s.Number, &s.Node, &s.Kind, &result, &ended)
	s.Result, s.EndedAt = json.RawMessage(result), instant(ended)
	return err
}
