package acting

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/wire"
)

// CheckEngine asks an engine about a queue. Start also starts a run and ends it.
func CheckEngine(ctx context.Context, runner engine.Engine, q sluice.Queue, start bool) wire.EngineCheck {
	target := engine.TargetOf(q.Name, q.Settings)
	out := wire.EngineCheck{Queue: q.Name, Engine: q.Settings.Engine, Namespace: target.Namespace, Type: target.Type, TaskQueue: target.TaskQueue, Faults: []string{}}
	report, err := runner.Check(ctx, target)
	if err != nil {
		out.Faults = append(out.Faults, err.Error())
		return out
	}
	out.Report = report
	if report.Pollers == 0 {
		out.Faults = append(out.Faults, "no worker waits at the task queue: runs would be started and go nowhere")
	}
	if err := engine.CheckFollowing(q.Settings, report); err != nil {
		out.Faults = append(out.Faults, err.Error())
	}
	if start {
		out.Faults = append(out.Faults, triedRun(ctx, runner, target)...)
	}
	return out
}

// triedRun starts a run and ends it.
func triedRun(ctx context.Context, runner engine.Engine, target engine.Target) []string {
	run := engine.Run{Job: sluice.NewID(), Generation: 1, Attempt: 1, Payload: []byte("{}"), Delay: time.Hour}
	run.Ref = "sluice-check-" + run.Job.String()
	if err := runner.Start(ctx, target, []engine.Run{run})[0]; err != nil {
		return []string{"a run could not be started: " + err.Error()}
	}
	end := runner.Cancel
	if byForce, can := runner.(engine.Terminator); can { // a run that is only cancelled would begin for that
		end = byForce.Terminate
	}
	if err := end(ctx, target, []string{run.Ref}, "it was started to check the engine")[0]; err != nil {
		return []string{"run " + run.Ref + " was started and could not be ended: " + err.Error()}
	}
	return nil
}
