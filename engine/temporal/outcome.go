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
)

const (
	// listFrom is from how many refs on a list is asked for first: below, it costs more calls than it saves.
	listFrom = 10
	// listRefs is how many refs one list names.
	listRefs = 500
	// pageSize is how many rows a list has at the most, which is the server's own limit.
	pageSize = 1000
)

// Outcomes says how runs are. One call lists 500 refs, and those shown as having ended well cost no more. Each other one
// is described, because a list lags behind: what it lacks may exist, and what runs there may have ended. See
// sluice.Engine.
func (e *Engine) Outcomes(ctx context.Context, target sluice.RunTarget, refs []string) ([]sluice.RunOutcome, error) {
	p, err := e.placeOf(target)
	if err != nil {
		return nil, err
	}
	known, err := e.listed(ctx, p, refs)
	if err != nil {
		return nil, err
	}
	outcomes := make([]sluice.RunOutcome, len(refs))
	var asked []int
	for i, ref := range refs {
		f, listed := known[ref]
		switch {
		case misnamed(ref) != "": // Temporal can have no such run
			outcomes[i] = sluice.RunOutcome{Ref: ref, State: sluice.RunAbsent}
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
			outcomes[asked[k]] = sluice.RunOutcome{Ref: refs[asked[k]]}
		}
	}
	return outcomes, first(errs)
}

// first is the first failure among answers.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// look finds out how one run is, from the list where that is enough.
func (e *Engine) look(ctx context.Context, p place, ref string, known map[string]found) (sluice.RunOutcome, error) {
	f, listed := known[ref]
	if !listed {
		var err error
		if f, err = e.describe(ctx, p, ref); err != nil {
			return sluice.RunOutcome{}, err
		}
	}
	return e.told(ctx, p, f)
}

// found is a workflow execution that has a ref.
type found struct {
	ref   string
	runID string
	first string // the first run of its chain
	state sluice.RunState
	work  string
	job   sluice.ID // zero: the memo names none, it is not of a job
	info  *workflowpb.WorkflowExecutionInfo
}

// outcome is what is told of a run as it was found.
func (f found) outcome() sluice.RunOutcome {
	out := sluice.RunOutcome{Ref: f.ref, Job: f.job, Work: f.work, State: f.state}
	if begun := f.info.GetStartTime(); begun != nil {
		out.StartedAt = begun.AsTime()
	}
	switch {
	case f.state == sluice.RunAbsent:
	case f.job.IsZero():
		out.State = sluice.RunForeign
	case f.state.Over():
		// Lists know it less exactly than the server itself does, each kind of store in its own way.
		out.EndedAt = f.info.GetCloseTime().AsTime().Truncate(time.Millisecond)
	}
	return out
}

// told is the outcome with its failure, or the result where that is wanted. Either costs a call.
func (e *Engine) told(ctx context.Context, p place, f found) (sluice.RunOutcome, error) {
	out := f.outcome()
	if !out.State.Over() || out.State == sluice.RunCompleted && !p.Results {
		return out, nil
	}
	err := e.ending(ctx, p, f, &out)
	return out, err
}

// describe asks for the last run that has a ref. It is the only call whose "no" is one: the answer comes from what the
// server runs by, and not from a list that it keeps beside.
func (e *Engine) describe(ctx context.Context, p place, ref string) (found, error) {
	f, err := e.describeRun(ctx, p, ref, "")
	if err != nil || f.state == sluice.RunAbsent || !f.job.IsZero() || f.first == "" || f.first == f.runID {
		return f, err
	}
	// When a run is continued as new, some SDKs drop the memo: the chain's first run has it.
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
		return found{ref: ref, state: sluice.RunAbsent}, nil
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

// jobOf reads whose a run is; zero: the memo does not say.
func jobOf(memo *commonpb.Memo) sluice.ID {
	id, err := sluice.ParseID(memoText(memo, memoJob))
	if err != nil {
		return sluice.ID{}
	}
	return id
}

// memoText reads a text of ours; empty: there is none.
func memoText(memo *commonpb.Memo, key string) string {
	var text string
	if json.Unmarshal(memo.GetFields()[key].GetData(), &text) != nil {
		return ""
	}
	return text
}

// stateOf translates a status. A run that was continued as new goes on in the next one, and one that a newer server has a
// word of its own for, such as paused, has not ended.
func stateOf(status enumspb.WorkflowExecutionStatus) sluice.RunState {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return sluice.RunCompleted
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		return sluice.RunFailed
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return sluice.RunCancelled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return sluice.RunTerminated
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return sluice.RunTimedOut
	}
	return sluice.RunRunning
}

// listed finds the runs that a list shows as having ended well, so that they need not be described. It is only a short
// cut: a server whose lists are down, forbidden or too busy is described run by run.
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
			if alone[f.ref] == 1 && f.state == sluice.RunCompleted && !f.job.IsZero() {
				known[f.ref] = f
			}
		}
	}
	return known, nil
}

// list asks for one page of runs.
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

// listable reports whether lists can be asked for a text. Servers that keep their lists in SQL find nothing by texts
// that need an escape, and PostgreSQL may refuse the whole query.
func listable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || strings.ContainsRune("'\"`\\", r) })
}

// quoted writes those texts for a query that lists can be asked for.
func quoted(texts []string) string {
	var list []string
	for _, text := range texts {
		if misnamed(text) == "" && listable(text) {
			list = append(list, "'"+text+"'")
		}
	}
	return strings.Join(list, ", ")
}
