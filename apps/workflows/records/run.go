package records

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/graph"
)

var (
	//go:embed sql/run_insert.sql
	runInsertSQL string
	//go:embed sql/execution_begin.sql
	executionBeginSQL string
	//go:embed sql/execution_gone.sql
	executionGoneSQL string
	//go:embed sql/execution_end.sql
	executionEndSQL string
	//go:embed sql/step_insert.sql
	stepInsertSQL string
)

// Begin notes that a run of an execution has begun, and says what it has to do. Whether workspace, definition and version
// are still there is read in the transaction that notes it: if one is gone, that is noted as the reason, and is
// a graph.ErrGone. An execution of another workspace is none for this run; an empty workspace: of any.
func (d *Database) Begin(ctx context.Context, workspace, execution, run string) (work graph.Work, err error) {
	var gone error
	err = d.transact(ctx, func(tx tx, _ sluice.Enqueuer) error {
		work, gone = graph.Work{}, nil
		found, err := list(ctx, tx, scanExecution, executionsSQL, workspace, execution, 1)
		if err != nil {
			return err
		}
		if execution == "" || len(found) == 0 {
			gone = fmt.Errorf("execution %.80q %w", execution, graph.ErrGone)
			return nil
		}
		e := found[0]
		there, err := thereOf(ctx, tx, e.Workspace, e.Definition, e.Version)
		if err != nil {
			return err
		}
		if gone = there.missing(e); gone != nil {
			_, err = tx.ExecContext(ctx, executionGoneSQL, execution, run, gone.Error())
			return err
		}
		work, err = begin(ctx, tx, e, run)
		return err
	})
	if err == nil {
		err = gone
	}
	return work, err
}

// missing says what an execution needs and is not there, the largest first.
func (t there) missing(e Execution) error {
	switch {
	case !t.workspace:
		return fmt.Errorf("workspace %s %w", e.Workspace, graph.ErrGone)
	case !t.definition:
		return fmt.Errorf("definition %s of workspace %s %w", e.Definition, e.Workspace, graph.ErrGone)
	case !t.version:
		return fmt.Errorf("version %d of definition %s of workspace %s %w", e.Version, e.Definition, e.Workspace, graph.ErrGone)
	}
	return nil
}

func begin(ctx context.Context, tx tx, e Execution, run string) (work graph.Work, err error) {
	text, err := graphOf(ctx, tx, e.Workspace, e.Definition, e.Version)
	if err != nil {
		return work, err
	}
	if err := json.Unmarshal([]byte(text), &work.Graph); err != nil {
		return work, fmt.Errorf("read the graph of execution %s: %w", e.ID, err)
	}
	if err := json.Unmarshal(e.Variables, &work.Variables); err != nil {
		return work, fmt.Errorf("read the variables of execution %s: %w", e.ID, err)
	}
	at := now()
	if _, err := tx.ExecContext(ctx, runInsertSQL, e.ID.String(), run, at); err != nil {
		return work, err
	}
	_, err = tx.ExecContext(ctx, executionBeginSQL, e.ID.String(), run, at)
	return work, err
}

// Step keeps what a node gave.
func (d *Database) Step(ctx context.Context, execution, run string, s graph.Step) error {
	return d.write(ctx, do(stepInsertSQL, execution, run, s.Number, s.Node, string(s.Kind), string(s.Result), s.EndedAt.UnixMicro()))
}

// End notes why the present run of an execution failed; an empty failure: it ended well. The execution itself ends with
// its job, in the same transaction.
func (d *Database) End(ctx context.Context, execution, run, failure string) error {
	return d.write(ctx, do(executionEndSQL, execution, run, failure))
}
