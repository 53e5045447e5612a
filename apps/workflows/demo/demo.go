// Package demo lets sixty workspaces of three plans have workflows executed, one of them far more than the others. It
// shows who gets what, and proves at the end, from the audit, that all was as it should be.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/graph"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/apps/workflows/service"
	"github.com/sluice-queue/sluice/internal/temporaltest"
	"github.com/sluice-queue/sluice/tenancy"
)

// Options say how large the demo is.
type Options struct {
	// Workspaces are so many: of ten, one is ENTERPRISE, three are PRO and six are FREE. The first is noisy, and has Noisy
	// executions. Each of the others has one more than its capacity, and then one in each of Rounds.
	Workspaces, Noisy, Rounds int
	// Every is the time between two rounds.
	Every time.Duration
	// Database is where everything is kept; empty: in a file that is deleted afterwards.
	Database string
	// Temporal is the address of a server; empty: one of the demo's own.
	Temporal string
}

// check says what the options must be.
func (o Options) check() error {
	if o.Workspaces < 5 || o.Noisy < 1 || o.Rounds < 0 || o.Every <= 0 {
		return errors.New("the demo needs 5 workspaces, an execution of the noisy one, and time between two rounds")
	}
	return nil
}

// noisyName is the workspace that has far more to do than the others.
const noisyName = "noisy"

// planOf puts the workspaces into plans by their places.
func planOf(place int) string {
	switch place % 10 {
	case 0:
		return "ENTERPRISE"
	case 1, 2, 3:
		return "PRO"
	}
	return "FREE"
}

// show is a demo under way.
type show struct {
	options  Options
	out      io.Writer
	database *records.Database
	target   *target
	// taskQueue is the demo's own, so that demos on one Temporal server do not run each other's executions.
	taskQueue string
	quiet     []records.Workspace
	capacity  map[string]int // by plan
	enqueued  int
}

// Run shows and checks that workspaces get their shares. It returns an error if the check fails.
func Run(ctx context.Context, o Options, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "sluice-workflows-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if o.Temporal == "" {
		server, err := temporaltest.Start(ctx, temporaltest.Options{})
		if err != nil {
			return err
		}
		defer server.Stop()
		o.Temporal = server.Address
	}
	if o.Database == "" {
		o.Database = filepath.Join(folder, "workflows.db")
	}
	database, err := records.Open(ctx, o.Database)
	if err != nil {
		return err
	}
	defer func() { _ = database.Close() }()
	target, err := newTarget(ctx)
	if err != nil {
		return err
	}
	defer target.close()
	s := &show{options: o, out: out, database: database, target: target, taskQueue: service.TaskQueue + "-" + sluice.NewID().String(), capacity: make(map[string]int)}
	return s.run(ctx)
}

func (s *show) run(ctx context.Context) error {
	for _, tier := range tenancy.PresetTiers() {
		s.capacity[tier.Tier] = *tier.Concurrency
	}
	if err := s.fill(ctx); err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	temporal, err := service.Dial(s.options.Temporal, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- service.Service{
			Database: s.database, Temporal: temporal, TaskQueue: s.taskQueue, Hosts: []string{s.target.host}, Logger: logger,
		}.Run(working)
	}()
	err = s.watch(working)
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	runs, err := s.runsOf(ctx, temporal)
	if err != nil {
		return err
	}
	return s.check(ctx, runs)
}

// runsOf asks Temporal how many runs it has started. It tells of the last ones a little late.
func (s *show) runsOf(ctx context.Context, temporal client.Client) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		counted, err := temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: "TaskQueue = '" + s.taskQueue + "'"})
		if err != nil {
			return 0, fmt.Errorf("count the runs in Temporal: %w", err)
		}
		n := int(counted.GetCount())
		if n >= s.enqueued {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return n, nil
		case <-again.C:
		}
	}
}

// countPatience is how long Temporal may be late with telling of runs.
const countPatience = 30 * time.Second

// fill makes the workspaces, and enqueues what is there from the beginning: all that the noisy one has, for each of the
// others one execution more than its capacity, and three whose workspace, definition or version goes while they wait.
func (s *show) fill(ctx context.Context) error {
	if err := service.Prepare(ctx, s.database, s.taskQueue); err != nil {
		return err
	}
	for place := range s.options.Workspaces {
		w := records.Workspace{ID: fmt.Sprintf("quiet-%02d", place), Plan: planOf(place)}
		if place == 0 {
			w.ID = noisyName
		} else {
			s.quiet = append(s.quiet, w)
		}
		if err := s.define(ctx, w); err != nil {
			return err
		}
	}
	if err := s.enqueue(ctx, noisyName, s.options.Noisy); err != nil {
		return err
	}
	for _, w := range s.quiet {
		if err := s.enqueue(ctx, w.ID, s.capacity[w.Plan]+1); err != nil {
			return err
		}
	}
	return s.loseSome(ctx)
}

// define makes a workspace with one workflow.
func (s *show) define(ctx context.Context, w records.Workspace) error {
	if err := s.database.SaveWorkspace(ctx, w, "demo"); err != nil {
		return err
	}
	if err := s.database.SaveDefinition(ctx, w.ID, records.Definition{ID: definitionName, Name: "Call, look and wait"}); err != nil {
		return err
	}
	return s.database.SaveVersion(ctx, w.ID, definitionName, 1, []byte(fmt.Sprintf(definition, s.target.host)))
}

const definitionName = "call"

// definition has a node of each kind.
const definition = `{"start": "region", "nodes": [
	{"id": "region", "kind": "set", "variable": "region", "value": "eu", "next": "call"},
	{"id": "call", "kind": "http", "url": "http://%s/work", "next": "called"},
	{"id": "called", "kind": "condition", "variable": "call.status", "op": "equal", "value": 200, "next": "pause", "else": "sorry"},
	{"id": "pause", "kind": "delay", "for": "300ms", "next": "done"},
	{"id": "done", "kind": "set", "variable": "outcome", "value": "called"},
	{"id": "sorry", "kind": "set", "variable": "outcome", "value": "refused"}
]}`

func (s *show) enqueue(ctx context.Context, workspace string, n int) error {
	all := make([]records.NewExecution, n)
	for i := range all {
		all[i] = records.NewExecution{Definition: definitionName, Variables: map[string]any{"number": i}}
	}
	s.enqueued += n
	_, _, err := s.database.EnqueueMany(ctx, workspace, all)
	return err
}

// lost are the workspaces of which something is deleted, by what it is.
var lost = []string{"lost-workspace", "lost-definition", "lost-version"}

// loseSome enqueues three executions, and deletes what they need.
func (s *show) loseSome(ctx context.Context) error {
	for _, id := range lost {
		if err := s.define(ctx, records.Workspace{ID: id, Plan: "PRO"}); err != nil {
			return err
		}
		if err := s.enqueue(ctx, id, 1); err != nil {
			return err
		}
	}
	return errors.Join(
		s.database.DeleteWorkspace(ctx, lost[0]),
		s.database.DeleteDefinition(ctx, lost[1], definitionName),
		s.database.DeleteVersion(ctx, lost[2], definitionName, 1),
	)
}

// watch shows how it goes, and lets the quiet workspaces have one more executed from time to time, until all is done.
func (s *show) watch(ctx context.Context) error {
	begun := time.Now()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	round := time.NewTicker(s.options.Every)
	defer round.Stop()
	rounds := s.options.Rounds
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-round.C:
			if rounds == 0 {
				continue
			}
			rounds--
			for _, w := range s.quiet {
				if err := s.enqueue(ctx, w.ID, 1); err != nil {
					return err
				}
			}
		case <-look.C:
			left, err := s.tell(ctx, time.Since(begun))
			if err != nil {
				return err
			}
			if left == 0 && rounds == 0 {
				return nil
			}
		}
	}
}

// tell shows a line of who has what, and says how many jobs are left.
func (s *show) tell(ctx context.Context, since time.Duration) (left int, err error) {
	counts, err := s.database.Counts(ctx, noisyName)
	if err != nil {
		return 0, err
	}
	depth, err := s.database.Client.Depth(ctx, records.Queue)
	if err != nil {
		return 0, err
	}
	_, _ = fmt.Fprintf(s.out, "%4.0fs %s\n", since.Seconds(), lineOf(counts))
	return depth.Ready + depth.Scheduled + depth.Claimed + depth.Dispatched, nil
}

// lineOf shows for the noisy workspace and for the others of each plan how many executions wait, run and are done.
func lineOf(counts []records.Count) string {
	byState := make(map[string]map[records.State]int)
	done := 0
	for _, c := range counts {
		group := c.Plan
		if c.Apart {
			group = noisyName
		}
		if byState[group] == nil {
			byState[group] = make(map[records.State]int)
		}
		byState[group][c.State] += c.N
		if c.State == records.Completed {
			done += c.N
		}
	}
	line := ""
	for _, group := range groupNames {
		n := byState[group]
		share := 100 * n[records.Completed] / max(done, 1)
		line += fmt.Sprintf(" | %s: %d wait, %d run, %d done (%d %%)", group, n[records.Waiting], n[records.Running], n[records.Completed], share)
	}
	return line
}

// groupNames are the noisy workspace and the others by plan, as they are shown.
var groupNames = []string{noisyName, "FREE", "PRO", "ENTERPRISE"}

// stateOfLost looks up the job of an execution whose needs are gone.
func (s *show) stateOfLost(ctx context.Context, workspace string) (sluice.Job, error) {
	page, err := s.database.Client.Jobs(ctx, sluice.JobFilter{Queue: records.Queue, Tenant: workspace, Limit: 1})
	if err != nil {
		return sluice.Job{}, err
	}
	if len(page.Jobs) == 0 {
		return sluice.Job{}, fmt.Errorf("the job of workspace %s: %w", workspace, graph.ErrGone)
	}
	return s.database.Client.Job(ctx, page.Jobs[0].ID)
}
