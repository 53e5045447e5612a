package cli

import (
	"context"
	"errors"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/schedule"
)

// upkeepLooks is how many schedules, operations and batches doctor looks at, of each.
const upkeepLooks = 1000

// waitingForUpkeep counts what only upkeep carries on: schedules that will fire, operations that run, and closed batches
// that are not complete. It looks at one page of each.
func waitingForUpkeep(ctx context.Context, store sluice.Store) (waiting int, err error) {
	schedules, err := schedule.List(ctx, store, schedule.Filter{Limit: upkeepLooks})
	if err != nil && !keepsNone(err) {
		return 0, err
	}
	for _, s := range schedules {
		if !s.Paused && (!s.NextAt.IsZero() || !s.Progress.Resumed.IsZero()) {
			waiting++
		}
	}
	operations, err := operation.List(ctx, store, operation.Filter{Open: true, Limit: upkeepLooks})
	if err != nil && !keepsNone(err) {
		return 0, err
	}
	for _, o := range operations {
		if o.State != operation.StatePaused {
			waiting++
		}
	}
	batches, err := batch.List(ctx, store, batch.Filter{Unfinished: true, Limit: upkeepLooks})
	if err != nil && !keepsNone(err) {
		return 0, err
	}
	for _, b := range batches {
		if !b.ClosedAt.IsZero() || b.Dead > 0 && b.DiedAt.IsZero() {
			waiting++
		}
	}
	return waiting, nil
}

// keepsNone reports whether a store, or the server in front of it, knows nothing of the kind.
func keepsNone(err error) bool {
	return errors.Is(err, sluice.ErrNotFound) || errors.Is(err, errors.ErrUnsupported)
}

// examineTasks checks who leads upkeep and who follows the runs at each engine. tended: some upkeep sends heartbeats.
// waiting: how much waits for upkeep.
func examineTasks(tasks []presence.Task, tended bool, waiting int) []finding {
	var out []finding
	for _, task := range tasks {
		if task.Engine == "" {
			out = append(out, examineUpkeep(task.Leader, tended, waiting))
			continue
		}
		out = append(out, examineFollowing(task))
	}
	return out
}

func examineUpkeep(lead presence.Leader, tended bool, waiting int) finding {
	switch {
	case lead.Held:
		return well("upkeep", "%s leads, since %s", lead.Holder, ago(lead.Since))
	case tended:
		return finding{
			Check: "upkeep", Severity: health.SeverityWarning, What: "upkeep runs, and none leads it", Why: "nothing is recovered, expired or pruned until one does",
			Repair: "wait a few seconds if the one that led was killed: another takes over once its lease has passed; else look for `elect` in upkeep's log",
		}
	case waiting == 0:
		return well("upkeep", "nobody does it, and nothing waits for it")
	}
	return finding{
		Check: "upkeep", Severity: health.SeverityError, What: "no upkeep was seen lately",
		Why: "jobs of workers that die are not handed out again, schedules do not fire, operations and batches do not go on, scheduled changes of settings are not applied, and history is not pruned", Repair: "sluice upkeep",
	}
}

func examineFollowing(task presence.Task) finding {
	unfollowed, is := task.Unfollowed()
	switch {
	case task.Leader.Held:
		return well("follow", "%s follows the runs at the engine %s, since %s", task.Leader.Holder, task.Engine, ago(task.Leader.Since))
	case !is:
		return well("follow", "nobody follows the runs at the engine %s, and none is under way", task.Engine)
	}
	return finding{
		Check: "follow", Severity: health.SeverityError, What: unfollowed.Text,
		Why:    "their jobs stay dispatched and hold their places in the limits, however the runs end",
		Repair: unfollowed.Repair,
	}
}

// examineHolder reports conditions that keep a process from its work; examineTasks reports unfollowed runs. A silent
// process without jobs is only a note: another may work in its place.
func examineHolder(h presence.Holder) []finding {
	var out []finding
	if i := h.Instruction; i != nil && i.Quiesces() {
		out = append(out, finding{
			Check: h.Role, Severity: health.SeverityNote, Well: true, What: h.ID + ": " + i.String(),
			Why: "it claims nothing until somebody lifts that", Repair: i.Lift(),
		})
	}
	for _, c := range h.Conditions {
		f := finding{
			Check: h.Role, Severity: health.SeverityError, What: h.ID + ": " + c.String(),
			Why: "it does not do that part of its work until this is mended", Repair: c.Repair,
		}
		switch c.Kind {
		case presence.ConditionUnfollowed:
			continue
		case presence.ConditionNoPollers:
			f.Why = "the runs hold their places in the limits, and never begin"
		case presence.ConditionTooOld:
			f.Why = "the store refuses all that it does"
		case presence.ConditionProtocol:
			f.Severity, f.Why = health.SeverityWarning, "processes of different protocols may not understand each other"
		case presence.ConditionLost:
			f.Severity, f.Why = health.SeverityWarning, "its jobs do not go on until upkeep takes them back, when their leases have ended"
		case presence.ConditionSilent:
			f.Well, f.Severity, f.Why = true, health.SeverityNote, "it is listed for an hour after it was last heard of"
		}
		out = append(out, f)
	}
	return out
}
