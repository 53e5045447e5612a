package temporal

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

const (
	// listFrom is the least number of refs for a list call; for fewer refs, a list costs more calls than it
	// saves.
	listFrom = 10
	// listRefs is the most refs in one list call.
	listRefs = 500
	// pageSize is the most rows per list call, the server's own limit.
	pageSize = 1000
)

// Outcomes returns the outcomes of runs. One call lists 500 refs, and runs listed as completed cost no more.
// Each other run is described, because a list lags behind: a missing run may exist, and a running one may have
// ended. See [engine.Engine].
func (e *Engine) Outcomes(ctx context.Context, target engine.Target, refs []string) ([]engine.Outcome, error) {
	p, err := e.placeOf(target)
	if err != nil {
		return nil, err
	}
	known, err := e.listed(ctx, p, refs)
	if err != nil {
		return nil, err
	}
	outcomes := make([]engine.Outcome, len(refs))
	var asked []int
	for i, ref := range refs {
		f, listed := known[ref]
		switch {
		case misnamed(ref) != "": // Temporal can have no such run
			outcomes[i] = engine.Outcome{Ref: ref, State: engine.Absent}
		case listed && !p.Results:
			outcomes[i] = f.outcome()
		default:
			asked = append(asked, i)
		}
	}
	errs := e.looks.each(ctx, len(asked), func(ctx context.Context, i int) error {
		i = asked[i]
		return patiently(ctx, func() (err error) {
			outcomes[i], err = e.look(ctx, p, refs[i], known)
			return err
		})
	})
	for k, err := range errs {
		if err != nil {
			outcomes[asked[k]] = engine.Outcome{Ref: refs[asked[k]]}
		}
	}
	return outcomes, first(errs)
}

// first returns the first error among answers.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// look returns the outcome of one run, from the list if possible.
func (e *Engine) look(ctx context.Context, p place, ref string, known map[string]found) (engine.Outcome, error) {
	f, listed := known[ref]
	if !listed {
		var err error
		if f, err = e.describe(ctx, p, ref); err != nil {
			return engine.Outcome{}, err
		}
	}
	return e.told(ctx, p, f)
}

// found is a workflow execution with a ref.
type found struct {
	ref   string
	runID string
	first string // the first run of its chain
	state engine.State
	work  string
	job   sluice.ID // zero: the memo names no job, so the run belongs to none
	info  *workflowpb.WorkflowExecutionInfo
}

// outcome returns the outcome of a run without its failure or result.
func (f found) outcome() engine.Outcome {
	out := engine.Outcome{Ref: f.ref, Job: f.job, Work: f.work, State: f.state}
	if begun := f.info.GetStartTime(); begun != nil {
		out.StartedAt = begun.AsTime()
	}
	switch {
	case f.state == engine.Absent:
	case f.job.IsZero():
		out.State = engine.Foreign
	case f.state.Over():
		// Lists store the time less exactly than the server does, depending on their database.
		out.EndedAt = f.info.GetCloseTime().AsTime().Truncate(time.Millisecond)
	}
	return out
}

// told returns the outcome with the failure, or with the result if wanted. Each costs a call.
func (e *Engine) told(ctx context.Context, p place, f found) (engine.Outcome, error) {
	out := f.outcome()
	if !out.State.Over() || out.State == engine.Completed && !p.Results {
		return out, nil
	}
	err := e.ending(ctx, p, f, &out)
	return out, err
}

// describe asks for the last run with a ref. Only this call can prove that a run does not exist: it reads the
// server's own state, not the list beside it.
func (e *Engine) describe(ctx context.Context, p place, ref string) (found, error) {
	f, err := e.describeRun(ctx, p, ref, "")
	if err != nil || f.state == engine.Absent || !f.job.IsZero() || f.first == "" || f.first == f.runID {
		return f, err
	}
	// When a run is continued as new, some SDKs drop the memo; the chain's first run still has it.
	begun, err := e.describeRun(ctx, p, ref, f.first)
	if err != nil {
		return f, err
	}
	f.job, f.work = begun.job, begun.work
	return f, nil
}

func (e *Engine) describeRun(ctx context.Context, p place, ref, runID string) (found, error) {
	call, cancel := e.limited(ctx)
	defer cancel()
	answer, err := e.service.DescribeWorkflowExecution(call, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: p.Namespace,
		Execution: &commonpb.WorkflowExecution{WorkflowId: ref, RunId: runID},
	})
	if lacksRun(err) {
		return found{ref: ref, state: engine.Absent}, nil
	}
	if err != nil {
		return found{}, fault(fmt.Sprintf("describe run %.200q in namespace %q", ref, p.Namespace), err)
	}
	return foundFrom(answer.GetWorkflowExecutionInfo()), nil
}

func foundFrom(info *workflowpb.WorkflowExecutionInfo) found {
	return found{
		ref:   info.GetExecution().GetWorkflowId(),
		runID: info.GetExecution().GetRunId(),
		first: info.GetFirstRunId(),
		state: stateOf(info.GetStatus()),
		work:  memoText(info.GetMemo(), memoWork),
		job:   jobOf(info.GetMemo()),
		info:  info,
	}
}

// jobOf reads the id of a run's job; zero: the memo names none.
func jobOf(memo *commonpb.Memo) sluice.ID {
	id, err := sluice.ParseID(memoText(memo, memoJob))
	if err != nil {
		return sluice.ID{}
	}
	return id
}

// memoText reads a field that Sluice wrote; empty: it is missing.
func memoText(memo *commonpb.Memo, key string) string {
	var text string
	if json.Unmarshal(memo.GetFields()[key].GetData(), &text) != nil {
		return ""
	}
	return text
}

// stateOf translates a status. A run that was continued as new goes on in the next one. An unknown status of a
// newer server, such as paused, counts as running.
func stateOf(status enumspb.WorkflowExecutionStatus) engine.State {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return engine.Completed
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		return engine.Failed
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return engine.Cancelled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return engine.Terminated
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return engine.TimedOut
	}
	return engine.Running
}

// listed returns the runs that a list shows as completed, so that they need no description. The list only saves
// calls: if lists fail, are forbidden or too busy, each run is described.
func (e *Engine) listed(ctx context.Context, p place, refs []string) (map[string]found, error) {
	known := make(map[string]found)
	if len(refs) < listFrom {
		return known, nil
	}
	for len(refs) > 0 {
		chunk := refs[:min(listRefs, len(refs))]
		refs = refs[len(chunk):]
		names := quoted(chunk)
		if names == "" {
			continue
		}
		var rows []found
		err := patiently(ctx, func() (err error) {
			rows, _, err = e.list(ctx, p, "WorkflowId IN ("+names+")", nil)
			return err
		})
		if lacksNamespace(err) {
			return nil, err
		}
		if err != nil {
			return known, nil //nolint:nilerr // what is not listed is described
		}
		alone := make(map[string]int)
		for _, f := range rows {
			alone[f.ref]++
		}
		for _, f := range rows {
			if alone[f.ref] == 1 && f.state == engine.Completed && !f.job.IsZero() {
				known[f.ref] = f
			}
		}
	}
	return known, nil
}

// list reads one page of runs.
func (e *Engine) list(ctx context.Context, p place, query string, next []byte) (rows []found, token []byte, err error) {
	call, cancel := e.limited(ctx)
	defer cancel()
	answer, err := e.service.ListWorkflowExecutions(call, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: p.Namespace, PageSize: pageSize, NextPageToken: next, Query: query,
	})
	if err != nil {
		return nil, nil, fault(fmt.Sprintf("list runs in namespace %q", p.Namespace), err)
	}
	for _, info := range answer.GetExecutions() {
		rows = append(rows, foundFrom(info))
	}
	return rows, answer.GetNextPageToken(), nil
}

// listable reports whether a list query can hold a text. Servers with lists in SQL do not find texts that need
// an escape, and PostgreSQL may refuse the whole query.
func listable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || strings.ContainsRune("'\"`\\", r) })
}

// quoted formats the listable texts for a query.
func quoted(texts []string) string {
	var list []string
	for _, text := range texts {
		if misnamed(text) == "" && listable(text) {
			list = append(list, "'"+text+"'")
		}
	}
	return strings.Join(list, ", ")
}
