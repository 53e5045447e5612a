package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/presence"
)

// enginesAsked is the most queues for which doctor asks engines.
const enginesAsked = 50

// examineEngines asks the given engines about the queues that name them. Each must answer, have what the queue needs,
// and have workers for its runs. An engine that does not answer is asked once.
func (a *app) examineEngines(ctx context.Context, client *sluice.Client, flags engineFlags) ([]finding, error) {
	engines, done, err := flags.open(true, slog.New(slog.DiscardHandler))
	if err != nil || len(engines) == 0 {
		return nil, err
	}
	defer done()
	queues, err := client.Queues(ctx, sluice.QueueFilter{})
	if err != nil {
		return nil, err
	}
	var out []finding
	away := make(map[string]bool)
	asked := 0
	for _, q := range queues {
		name := q.Settings.Engine
		if engines[name] == nil || away[name] || asked == enginesAsked {
			continue
		}
		asked++
		report, err := engines[name].Check(ctx, engine.TargetOf(q.Name, q.Settings))
		away[name] = errors.Is(err, engine.ErrUnavailable)
		out = append(out, engineFinding(q, report, err))
	}
	return out, nil
}

// engineFinding turns an engine's answer about a queue into a finding.
func engineFinding(q sluice.Queue, report engine.Report, err error) finding {
	name, target := q.Settings.Engine, engine.TargetOf(q.Name, q.Settings)
	ill := finding{Check: "engine", Severity: health.SeverityError}
	c := presence.Condition{}
	switch {
	case err != nil:
		c = presence.EngineCondition(q.Name, name, time.Time{}, "runs can neither be started nor followed", err)
		ill.Why = "the jobs of the queue wait until this is mended"
	case report.Pollers == 0:
		c = presence.NewCondition(presence.ConditionNoPollers, q.Name, name, time.Time{}, fmt.Sprintf("no worker polls task queue %q of the engine %s", target.TaskQueue, name))
		ill.Why = "runs are started and go nowhere; they hold their places in the limits"
	default:
		return well("engine", "%s: the engine %s %s answers, and workers poll task queue %s: %d", q.Name, name, report.Version, target.TaskQueue, report.Pollers)
	}
	ill.What, ill.Repair = c.String(), c.Repair
	return ill
}
